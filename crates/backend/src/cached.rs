//! Values that crates cache with a device: one of each type, and plans that calls on host slices make behind the
//! scenes.

use std::{
    any::{Any, TypeId},
    collections::{BTreeMap, VecDeque},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// One value of each type.
#[derive(Default)]
pub(crate) struct Values(Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>);

impl Values {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The value of a type, made at its first use.
    pub(crate) fn get<T: Any + Default + Send + Sync>(&self) -> Arc<T> {
        let known = self.lock().get(&TypeId::of::<T>()).map(Arc::clone);
        let value = known.unwrap_or_else(|| {
            let made: Arc<dyn Any + Send + Sync> = Arc::new(T::default());
            // Another thread's may stay: then this one goes when the lock is free again.
            Arc::clone(self.lock().entry(TypeId::of::<T>()).or_insert_with(|| Arc::clone(&made)))
        });
        match value.downcast() {
            Ok(value) => value,
            Err(_) => unreachable!("values are kept under their own type"),
        }
    }
}

/// The most plans of one type that a device caches.
pub const CACHED_PLANS: usize = 8;

type Plan = Arc<dyn Any + Send + Sync>;

/// The plans of a device: the most recently used of each type.
#[derive(Default)]
pub(crate) struct Plans(Mutex<VecDeque<(TypeId, String, Plan)>>);

impl Plans {
    fn lock(&self) -> MutexGuard<'_, VecDeque<(TypeId, String, Plan)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The plan of a type under a key, which counts as used.
    pub(crate) fn find<T: Any + Send + Sync>(&self, key: &str) -> Option<Arc<T>> {
        used(&mut self.lock(), key)
    }

    /// Keeps a plan, unless another thread was faster: then gives that one's.
    pub(crate) fn keep<T: Any + Send + Sync>(&self, key: &str, plan: Arc<T>) -> Arc<T> {
        let mut plans = self.lock();
        if let Some(earlier) = used(&mut plans, key) {
            // A plan that goes gives back memory and kernels: not under the lock.
            drop(plans);
            return earlier;
        }
        let kind = TypeId::of::<T>();
        plans.push_back((kind, key.to_owned(), Arc::clone(&plan) as Plan));
        let same = plans.iter().filter(|(other, ..)| *other == kind).count();
        let oldest = plans.iter().position(|(other, ..)| *other == kind).filter(|_| same > CACHED_PLANS);
        let dropped = oldest.and_then(|oldest| plans.remove(oldest));
        drop(plans);
        drop(dropped);
        plan
    }

    /// Drops all, and tells whether there were any.
    pub(crate) fn clear(&self) -> bool {
        let plans = mem::take(&mut *self.lock());
        !plans.is_empty()
    }
}

/// The plan of a type under a key, which goes behind those that were used before.
fn used<T: Any + Send + Sync>(plans: &mut VecDeque<(TypeId, String, Plan)>, key: &str) -> Option<Arc<T>> {
    let at = plans.iter().position(|(kind, name, _)| *kind == TypeId::of::<T>() && name == key)?;
    let found = plans.remove(at)?;
    let plan = Arc::clone(&found.2).downcast().ok();
    plans.push_back(found);
    plan
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicU32, Ordering},
    };

    use super::*;
    use crate::{cpu::Cpu, device::Device, registry::tests::within_a_minute};

    fn plan(device: &Device, key: &str, value: u32) -> u32 {
        *device.cached_plan(key, || Ok::<_, Infallible>(value)).unwrap_or_else(|never| match never {})
    }

    #[test]
    fn plans_are_made_once_and_the_oldest_goes() {
        let device = Device::unregistered(Arc::new(Cpu::new()));
        assert_eq!((plan(&device, "a", 1), plan(&device, "a", 2)), (1, 1));
        (1..CACHED_PLANS).for_each(|i| assert_eq!(plan(&device, &i.to_string(), 0), 0));
        assert_eq!(plan(&device, "a", 3), 1, "used last");
        assert_eq!(plan(&device, "one more", 4), 4);
        assert_eq!(plan(&device, "1", 5), 5, "the oldest went");
        assert_eq!(plan(&device, "a", 6), 1);
    }

    #[test]
    fn types_do_not_meet_and_errors_keep_nothing() {
        let device = Device::unregistered(Arc::new(Cpu::new()));
        assert_eq!(plan(&device, "a", 1), 1);
        assert_eq!(*device.cached_plan("a", || Ok::<u64, Infallible>(2)).unwrap(), 2);
        assert_eq!(device.cached_plan("b", || Err::<u32, _>("no")).unwrap_err(), "no");
        assert_eq!(plan(&device, "b", 3), 3);
        device.trim();
        assert_eq!(plan(&device, "a", 4), 4);
    }

    #[test]
    fn values_are_cached_by_type() {
        type Numbers = Mutex<Vec<u32>>;
        let device = Device::cpu();
        device.cached_value::<Numbers>().lock().unwrap().push(7);
        assert_eq!(*Device::cpu().cached_value::<Numbers>().lock().unwrap(), [7]);
        assert!(device.cached_value::<Mutex<Vec<u64>>>().lock().unwrap().is_empty());
    }

    /// What depends on another value of the same device.
    struct Outer(Arc<Inner>);

    #[derive(Default)]
    struct Inner(AtomicU32);

    impl Default for Outer {
        fn default() -> Self {
            let inner = Device::cpu().cached_value::<Inner>();
            inner.0.fetch_add(1, Ordering::Relaxed);
            Self(inner)
        }
    }

    #[test]
    fn values_may_ask_for_others_when_they_are_made() {
        let device = Device::cpu();
        let outer = within_a_minute(|| Device::cpu().cached_value::<Outer>());
        assert!(Arc::ptr_eq(&outer, &device.cached_value()) && Arc::ptr_eq(&outer.0, &device.cached_value()));
        assert_eq!(outer.0.0.load(Ordering::Relaxed), 1);
    }
}
