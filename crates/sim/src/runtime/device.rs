//! Devices: how many, which one is the thread's, who reaches whom; and the beginning and end of the runtime.

use super::context;
use crate::config::settings::{RunMode, settings, valid_device};
use crate::edge::argument::{exports, put, required};
use crate::edge::error::{
    FEATURE_UNSUPPORTED, INVALID_PARAM, Outcome, REPEAT_FINALIZE, REPEAT_INITIALIZE, RT_CONTEXT_NULL, RT_PARAM_INVALID,
    check,
};
use crate::state::context::{Context, current, set_current};
use crate::state::world::{self, Lifecycle};
use crate::stream;
use std::ffi::c_char;

exports! {
    /// Begins. The configuration file is not read.
    fn aclInit(configPath: *const c_char) => {
        let _ = configPath;
        let mut world = world::lock();
        check(world.lifecycle != Lifecycle::Initialized, REPEAT_INITIALIZE, || "aclInit was called before".into())?;
        world.lifecycle = Lifecycle::Initialized;
        Ok(())
    };
    /// Ends. Devices keep what they have until they are reset.
    fn aclFinalize() => {
        let mut world = world::lock();
        check(world.lifecycle != Lifecycle::Finalized, REPEAT_FINALIZE, || "aclFinalize was called before".into())?;
        world.lifecycle = Lifecycle::Finalized;
        Ok(())
    };
    /// Takes a device: its default context becomes the thread's.
    fn aclrtSetDevice(deviceId: i32) => {
        let device = valid_device(deviceId)?;
        set_current(take(device));
        Ok(())
    };
    /// Gives a device back; the last one ends its default context.
    fn aclrtResetDevice(deviceId: i32) => give_back(deviceId, Release::One);
    /// Gives a device back however often it was taken.
    fn aclrtResetDeviceForce(deviceId: i32) => give_back(deviceId, Release::All);
    /// The device of the thread's context.
    fn aclrtGetDevice(deviceId: *mut i32) => {
        required(deviceId, "deviceId")?;
        put(deviceId, "deviceId", current()?.device as i32)
    };
    /// How many devices there are.
    fn aclrtGetDeviceCount(count: *mut u32) => put(count, "count", settings().devices);
    /// Where the program runs: 1 on the host, 0 on the device.
    fn aclrtGetRunMode(runMode: *mut i32) => {
        let mode = match settings().run_mode {
            RunMode::Host => 1,
            RunMode::Device => 0,
        };
        put(runMode, "runMode", mode)
    };
    /// Waits until every stream of the thread's device is idle.
    fn aclrtSynchronizeDevice() => stream::synchronize_device(current()?.device, None);
    /// As `aclrtSynchronizeDevice`, for at most `timeout` milliseconds; -1 is no limit.
    fn aclrtSynchronizeDeviceWithTimeout(timeout: i32) => {
        let limit = stream::limit(timeout)?;
        stream::synchronize_device(current()?.device, limit)
    };
    /// Whether a device can reach a peer: all can.
    fn aclrtDeviceCanAccessPeer(canAccessPeer: *mut i32, deviceId: i32, peerDeviceId: i32) => {
        two_devices(deviceId, peerDeviceId)?;
        check(!canAccessPeer.is_null(), RT_PARAM_INVALID, || "canAccessPeer must not be NULL".into())?;
        valid_device(deviceId)?;
        valid_device(peerDeviceId)?;
        put(canAccessPeer, "canAccessPeer", 1)
    };
    /// Lets the thread's device reach a peer. `flags` is 0.
    fn aclrtDeviceEnablePeerAccess(peerDeviceId: i32, flags: u32) => {
        check(flags == 0, FEATURE_UNSUPPORTED, || format!("flags={flags} must be 0"))?;
        set_peer(peerDeviceId, |peers, bit| peers | bit)
    };
    /// Takes `aclrtDeviceEnablePeerAccess` back.
    fn aclrtDeviceDisablePeerAccess(peerDeviceId: i32) => set_peer(peerDeviceId, |peers, bit| peers & !bit);
}

/// The product's SoC name.
#[unsafe(no_mangle)]
pub extern "C-unwind" fn aclrtGetSocName() -> *const c_char {
    settings().product.name.as_ptr()
}

fn take(device: u32) -> &'static Context {
    let existing = {
        let mut world = world::lock();
        let state = &mut world.devices[device as usize];
        state.references += 1;
        // The program may have destroyed it like any other context.
        state.primary = state.primary.filter(|context| context.head.lives());
        state.primary
    };
    if let Some(context) = existing {
        return context;
    }
    let made = context::create(device);
    let mut world = world::lock();
    // Another thread may have been faster; its context stays, ours has never been seen.
    let kept = *world.devices[device as usize].primary.get_or_insert(made);
    drop(world);
    if !std::ptr::eq(kept, made) {
        context::destroy(made);
    }
    kept
}

/// How much of a device is given back.
enum Release {
    One,
    All,
}

fn give_back(id: i32, release: Release) -> Outcome {
    let device = valid_device(id)?;
    let ended = {
        let mut world = world::lock();
        let state = &mut world.devices[device as usize];
        check(state.references > 0, RT_CONTEXT_NULL, || format!("deviceId={id} was not set"))?;
        state.references = match release {
            Release::One => state.references - 1,
            Release::All => 0,
        };
        if state.references > 0 {
            return Ok(());
        }
        state.peers = 0;
        state.primary.take()
    };
    if let Some(context) = ended {
        context::destroy(context);
    }
    Ok(())
}

fn two_devices(device: i32, peer: i32) -> Outcome {
    check(device != peer, INVALID_PARAM, || format!("deviceId={device} and peerDeviceId={peer} must differ"))
}

fn set_peer(peer: i32, change: impl FnOnce(u64, u64) -> u64) -> Outcome {
    let device = current()?.device;
    two_devices(device as i32, peer)?;
    let bit = 1 << valid_device(peer)?;
    let mut world = world::lock();
    let peers = &mut world.devices[device as usize].peers;
    *peers = change(*peers, bit);
    Ok(())
}
