//! Faults: handlers that failed, which their objects keep until an operator ends them.
//!
//! A fault has the number of the alarm that had called the handler. Calling it once more is an alarm
//! like any other: the handler runs in a step of its own, and should it fail again, there is a new fault.
//! Invariant: `State::faulty` names the objects that keep faults, and no others.

use crate::{
    command::Place,
    effect::Effect,
    engine::Engine,
    limits::within,
    machine::Machine,
    names::{AlarmId, ObjectName},
    outcome::{CallError, Outcome, Trap},
    state::{Alarm, AlarmAction, Fault, Frame},
    sum::Sum,
};

impl<E: Engine> Machine<E> {
    /// A handler that failed is kept for the operator; its object goes on serving. The oldest make way.
    pub(crate) fn keep_fault(&mut self, alarm: AlarmId, frame: &Frame, trap: Trap) {
        let most = self.world.state.limits().faults_per_object.max(1);
        let at = self.world.state.now;
        let method = self.world.state.interface_of(frame).methods.get(&frame.method);
        let signature = method.map_or(0, |method| method.signature);
        let Some(object) = self.world.state.object_mut(&frame.object) else {
            return;
        };
        let (handler, arguments) = (frame.method.clone(), frame.arguments.clone());
        let text = format!("{handler}: {trap}");
        let fault = Fault { alarm, handler, signature, arguments, trap, at };
        let plus = object.fault_record(&fault);
        let mut minus = Sum::default();
        while object.faults.len() as u64 >= most {
            let oldest = object.faults.pop_front().expect("it has at least one");
            minus += object.fault_record(&oldest);
        }
        object.faults.push_back(fault);
        self.world.staged.push(Effect::HandlerFailed { object: frame.object.clone(), text });
        self.world.state.adjust_object(&frame.object, minus, plus);
        self.world.state.faulty.insert(frame.object.clone());
    }

    /// An operator ends a fault; its handler may be called once more.
    pub(super) fn end_fault(
        &mut self,
        place: Place,
        name: &ObjectName,
        fault: AlarmId,
        retry: bool,
    ) {
        let outcome = self.try_end_fault(name, fault, retry);
        self.world.reply(place.session, place.number, outcome);
    }

    fn try_end_fault(&mut self, name: &ObjectName, fault: AlarmId, retry: bool) -> Outcome {
        let (now, most) = (self.world.due_after(0), self.world.state.limits().alarms_per_object);
        let object = self.world.state.objects.get(name).ok_or(CallError::ObjectUnknown)?;
        let place = object.faults.iter().position(|kept| kept.alarm == fault);
        let place = place.ok_or(CallError::FaultUnknown)?;
        if retry {
            let alarms = object.alarms.len() as u64 + 1;
            within("alarms_per_object", most, alarms).map_err(CallError::Limit)?;
            self.check_fault_handler(name, &object.faults[place])?;
        }
        let object = self.world.state.object_mut(name).expect("it was just found");
        let ended = object.faults.remove(place).expect("it was just found");
        let (minus, incarnation) = (object.fault_record(&ended), object.incarnation);
        if object.faults.is_empty() {
            self.world.state.faulty.remove(name);
        }
        self.world.state.adjust_object(name, minus, Sum::default());
        if retry {
            let Fault { handler, arguments, .. } = ended;
            let action = AlarmAction::Handler { incarnation, handler, arguments, watched: None };
            let id = self.world.state.next.take_alarm();
            self.world.insert_alarm(id, Alarm { due: Some(now), object: name.clone(), action });
        }
        self.world.touch(name);
        Ok(Vec::new())
    }

    /// Whether the code that the class has now takes what the handler was called with. It may have gone
    /// on in an update, which is called then.
    fn check_fault_handler(&self, name: &ObjectName, fault: &Fault) -> Result<(), CallError> {
        let methods = &self.world.state.classes[&name.class].interface.methods;
        match methods.get(&fault.handler) {
            Some(method)
                if method.kind.can_be_continued_with() && method.signature == fault.signature =>
            {
                Ok(())
            }
            _ => Err(CallError::HandlerGone { handler: fault.handler.clone() }),
        }
    }
}
