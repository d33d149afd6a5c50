//! Looking figures up in results.

use std::{cell::RefCell, collections::BTreeMap};

use crate::{Device, Record, Results};

/// Figures of one device, from one or several files of results. The first file with a case counts. It remembers the
/// cases that a caller asks for: the found ones with their file, and those that nobody measured.
#[derive(Debug)]
pub struct Figures<'a> {
    files: Vec<(&'a str, &'a Results)>,
    name: &'a str,
    used: RefCell<Vec<&'a str>>,
    lacking: RefCell<BTreeMap<String, Vec<u32>>>,
}

impl<'a> Figures<'a> {
    /// Figures of the device with a name, such as `NVIDIA H200`, from files that are known by name.
    pub fn new(name: &'a str, files: impl IntoIterator<Item = (&'a str, &'a Results)>) -> Self {
        Self { files: files.into_iter().collect(), name, used: RefCell::default(), lacking: RefCell::default() }
    }

    /// The device's name.
    pub fn device_name(&self) -> &'a str {
        self.name
    }

    /// The device's limits, from the first file that has it.
    pub fn device(&self) -> Option<&'a Device> {
        self.files.iter().find_map(|(_, results)| device(results, self.name))
    }

    /// Whether the device is the host's processor, so that nothing is copied to it, and nothing waits for it.
    pub fn is_host(&self) -> bool {
        self.device().is_some_and(|device| device.device == "cpu")
    }

    /// The record of a case at a size.
    pub fn record(&self, case: &str, log_n: u32) -> Option<&'a Record> {
        let found = self.files.iter().find_map(|(file, results)| {
            let device = device(results, self.name)?;
            let is_it = |record: &&Record| {
                record.case == case && record.log_n == log_n && record.peer.is_none() && record.device == device.device
            };
            results.records.iter().find(is_it).map(|record| (*file, record))
        });
        match found {
            Some((file, record)) => {
                let mut used = self.used.borrow_mut();
                if !used.contains(&file) {
                    used.push(file);
                }
                Some(record)
            }
            None => {
                self.lacking.borrow_mut().entry(case.to_owned()).or_default().push(log_n);
                None
            }
        }
    }

    /// The median of a case in milliseconds.
    pub fn time(&self, case: &str, log_n: u32) -> Option<f64> {
        self.record(case, log_n).map(|record| record.median_ms)
    }

    /// Elements, or of AES bytes, in a second.
    pub fn rate(&self, case: &str, log_n: u32) -> Option<f64> {
        self.record(case, log_n)?.throughput
    }

    /// The files that figures were taken from, with the commits that they measured.
    pub fn sources(&self) -> Vec<(&'a str, &'a str)> {
        let used = self.used.borrow();
        self.files
            .iter()
            .filter(|(file, _)| used.contains(file))
            .map(|(file, results)| (*file, results.commit.as_str()))
            .collect()
    }

    /// What was asked for and nobody measured, a line each, with the reason where there is one.
    pub fn lacking(&self) -> Vec<String> {
        let reason = |case: &str| {
            let skipped = self.files.iter().flat_map(|(_, results)| &results.skipped);
            skipped.filter(|skipped| skipped.case == case).map(|skipped| skipped.reason.as_str()).next()
        };
        let line = |(case, sizes): (&String, &Vec<u32>)| {
            let mut sizes = sizes.clone();
            sizes.sort_unstable();
            sizes.dedup();
            let sizes: Vec<String> = sizes.iter().map(|log_n| format!("2^{log_n}")).collect();
            let reason = reason(case).map(|reason| format!(": {reason}")).unwrap_or_default();
            format!("{case} at {}{reason}", sizes.join(", "))
        };
        self.lacking.borrow().iter().map(line).collect()
    }
}

fn device<'a>(results: &'a Results, name: &str) -> Option<&'a Device> {
    results.machine.devices.iter().find(|device| device.name == name)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{Machine, Skipped};

    /// Results of a device called `card` that has these cases, sizes and milliseconds, all of 2^size elements.
    pub(crate) fn results(cases: &[(&str, u32, f64)]) -> Results {
        let record = |&(case, log_n, median_ms): &(&str, u32, f64)| Record {
            algorithm: "test".into(),
            case: case.into(),
            device: "cuda:0".into(),
            peer: None,
            log_n,
            median_ms,
            mean_ms: None,
            variance_ms2: None,
            throughput: Some(f64::from(1_u32 << log_n) / median_ms * 1e3),
            launches: Some(3),
            relative_efficiency: None,
            of_limit: None,
            checked: String::new(),
            speedup: None,
        };
        let device = Device { device: "cuda:0".into(), name: "card".into(), copy_bytes_per_s: 4e12, mul_per_s: 60e9 };
        Results {
            machine: Machine { cpu: "cpu".into(), cores: 1, devices: vec![device], missing: Vec::new() },
            commit: "c0ffee".into(),
            failures: Vec::new(),
            skipped: Vec::new(),
            records: cases.iter().map(record).collect(),
        }
    }

    #[test]
    fn the_first_file_counts_and_what_lacks_is_told() {
        let (first, mut second) =
            (results(&[("a/device", 4, 1.0)]), results(&[("a/device", 4, 2.0), ("b/device", 5, 3.0)]));
        second.skipped.push(Skipped {
            device: "cuda:0".into(),
            case: "d/device".into(),
            log_n: 7,
            reason: "too large".into(),
        });
        let figures = Figures::new("card", [("first", &first), ("second", &second), ("third", &second)]);
        assert_eq!((figures.time("a/device", 4), figures.time("b/device", 5)), (Some(1.0), Some(3.0)));
        assert_eq!(figures.rate("a/device", 4), Some(16e3));
        assert_eq!(figures.sources(), [("first", "c0ffee"), ("second", "c0ffee")]);
        for log_n in [7, 6, 7] {
            assert_eq!((figures.time("c/device", log_n), figures.time("d/device", log_n)), (None, None));
        }
        assert_eq!(figures.lacking(), ["c/device at 2^6, 2^7", "d/device at 2^6, 2^7: too large"]);
        assert!(Figures::new("other card", [("first", &first)]).time("a/device", 4).is_none());
    }
}
