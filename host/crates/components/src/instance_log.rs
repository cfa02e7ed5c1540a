//! Log of organizations' provider instances for their administrators: what their plugins write, and requests
//! and calls that fail. Lines wait in memory until a periodic task stores them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use holdfast_domain::clock::{Clock, Timestamp};
use holdfast_domain::component::{InstanceLogLevel, InstanceLogLine, Slot};
use holdfast_domain::id::{LogLineId, OrgId};

/// Lines of all instances that wait to be stored. Further ones are lost.
const MAX_WAITING: usize = 4_096;
/// Lines of an instance in a minute. Further ones are lost.
const MAX_A_MINUTE: u32 = 120;
/// Bytes of a message.
const MAX_MESSAGE: usize = 1_000;
/// Milliseconds of a minute.
const MINUTE: i64 = 60_000;

/// Lines of this process that are not stored yet.
#[derive(Default)]
pub struct InstanceLog(Mutex<WaitingLines>);

#[derive(Default)]
struct WaitingLines {
    lines: Vec<InstanceLogLine>,
    /// Minute of the last line of each instance, and the number of its lines in that minute.
    numbers: HashMap<(OrgId, Slot, String), (i64, u32)>,
}

/// Writes to the log of one instance.
#[derive(Clone)]
pub struct InstanceLogger {
    log: Arc<InstanceLog>,
    org: OrgId,
    slot: Slot,
    instance: String,
    component: String,
    clock: Clock,
}

impl InstanceLog {
    /// Returns a writer for an instance of an organization.
    pub fn of(
        self: &Arc<Self>,
        org: &OrgId,
        slot: Slot,
        instance: &str,
        clock: Clock,
    ) -> InstanceLogger {
        InstanceLogger {
            log: self.clone(),
            org: org.clone(),
            slot,
            instance: instance.to_owned(),
            component: String::new(),
            clock,
        }
    }

    /// Takes the lines that wait to be stored.
    pub fn take(&self) -> Vec<InstanceLogLine> {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Those of this minute go on counting.
        let newest = waiting.numbers.values().map(|(minute, _)| *minute).max();
        waiting
            .numbers
            .retain(|_, (minute, _)| Some(*minute) == newest);
        std::mem::take(&mut waiting.lines)
    }
}

impl WaitingLines {
    /// Counts a line. Returns false for one too many.
    fn has_room(&mut self, writer: &InstanceLogger, now: Timestamp) -> bool {
        let minute = now.as_millis() / MINUTE;
        let key = (writer.org.clone(), writer.slot, writer.instance.clone());
        let known = self.numbers.entry(key).or_insert((minute, 0));
        if known.0 != minute {
            *known = (minute, 0);
        }
        known.1 += 1;
        // A plugin in a loop must neither fill the memory nor push out the lines of other tenants.
        known.1 <= MAX_A_MINUTE && self.lines.len() < MAX_WAITING
    }
}

impl InstanceLogger {
    /// Sets the component that writes the following lines.
    pub fn with_component(mut self, component: String) -> Self {
        self.component = component;
        self
    }

    /// Adds a line.
    pub fn write(&self, level: InstanceLogLevel, message: &str) {
        let now = self.clock.now();
        let mut waiting = self.log.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !waiting.has_room(self, now) {
            return;
        }

        let end = message.floor_char_boundary(MAX_MESSAGE);
        waiting.lines.push(InstanceLogLine {
            id: LogLineId::new(),
            org: self.org.clone(),
            slot: self.slot,
            instance: self.instance.clone(),
            at: now,
            level,
            component: self.component.clone(),
            message: message[..end].to_owned(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_that_writes_much_leaves_room_for_others() {
        let log = Arc::new(InstanceLog::default());
        let clock = Clock::at(Timestamp::parse("2026-01-02T03:04:05Z").unwrap());
        let loud = log.of(&OrgId::new(), Slot::Signing, "loud", clock);
        let calm = log.of(&OrgId::new(), Slot::Signing, "calm", clock);
        for _ in 0..10_000 {
            loud.write(InstanceLogLevel::Info, &"é".repeat(1_000));
        }

        calm.write(InstanceLogLevel::Error, "no answer");
        let lines = log.take();
        assert_eq!(lines.len(), 121);
        assert_eq!(lines[0].message.len(), 1_000);
        assert_eq!(
            (lines[120].instance.as_str(), lines[120].message.as_str()),
            ("calm", "no answer")
        );

        loud.write(InstanceLogLevel::Info, "in the same minute");
        calm.write(InstanceLogLevel::Info, "in the same minute");
        let lines = log.take();
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert_eq!(lines[0].instance, "calm");
    }
}
