//! The curves whose points live on devices.

use ark_ec::short_weierstrass::SWCurveConfig;
use evariste_field::DeviceField;

/// A curve whose points live on devices: every short Weierstrass curve of arkworks over a [`DeviceField`].
pub trait DeviceCurve: SWCurveConfig<BaseField: DeviceField> {}

impl<C: SWCurveConfig<BaseField: DeviceField>> DeviceCurve for C {}
