//! Calls that return at once: the thread that runs them, and how they come to it.

use std::io;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::calls::{Call, Message};
use super::driver::{Driver, Pending, Work};
use super::request::Request;
use super::turns::Turns;
use super::{Group, lock};
use crate::engine::Waking;
use crate::error::Result;
use crate::kernels::FloatMode;
use crate::panics;
use crate::sys::{self, Interest, PollEntry, Wake};
use crate::wire::Kind;

/// Where the system can't poll for want of memory, the thread looks for calls this often.
const PAUSE: Duration = Duration::from_millis(10);

/// The request thread, from the first call that needs it on.
#[derive(Default)]
pub struct Requests(Mutex<Option<Started>>);

struct Started {
    inbox: Arc<Inbox>,
    thread: JoinHandle<()>,
}

/// New calls on their way to the request thread.
struct Inbox {
    state: Mutex<State>,
    bell: Arc<Wake>,
}

#[derive(Default)]
struct State {
    calls: Vec<Pending<'static>>,
    /// Theirs, which lives until they have ended: None where there are none.
    group: Option<Arc<Group>>,
    /// The thread sleeps, or is about to.
    asleep: bool,
    closing: bool,
}

impl Group {
    /// Starts a collective; one whose arguments were refused takes its number all the same.
    pub fn collective_async(
        self: &Arc<Group>,
        kind: Kind,
        call: Result<Call<'static>>,
    ) -> Result<Arc<Request>> {
        let _entered = self.enter()?;
        let call = call.and_then(|call| self.carried(call));
        let call = call.map_err(|refusal| self.refuse(kind, refusal))?;
        if self.size() == 1 {
            return Ok(self.at_once(&call));
        }
        self.submit(&self.collectives.turns, Work::Collective(call))
    }

    /// Starts a message.
    pub fn message_async(self: &Arc<Group>, message: Message<'static>, sends: bool) -> Result<Arc<Request>> {
        let _entered = self.enter()?;
        if self.is_mlx() {
            let (send, recv) = if sends { (Some(message), None) } else { (None, Some(message)) };
            let call = self.message_call(send, recv)?;
            return self.submit(&self.collectives.turns, Work::Collective(call));
        }
        let turns = &self.way(message.peer, sends)?.turns;
        self.submit(turns, Work::Message { message, sends, is_request: true })
    }

    /// A group of one needs no thread.
    fn at_once(self: &Arc<Group>, call: &Call<'_>) -> Arc<Request> {
        self.run_alone(call, &self.collectives.turns.take());
        let (request, reply) = Request::new(Arc::downgrade(self), self.generation);
        reply.done(Ok(()));
        request
    }

    fn submit(self: &Arc<Group>, turns: &Arc<Turns>, work: Work<'static>) -> Result<Arc<Request>> {
        let inbox = self.requests.inbox();
        let inbox = inbox.map_err(|error| self.host_refused("starting a thread", &error))?;
        let entered = Some(self.running.enter()?);
        let (request, reply) = Request::new(Arc::downgrade(self), self.generation);
        // Within the lock, so that calls come to the thread in the order of their numbers.
        let mut state = lock(&inbox.state);
        let ticket = match &work {
            Work::Collective(call) if call.kind == Kind::Message => {
                turns.ticket_for(|| self.message_number(call))
            }
            _ => turns.ticket(),
        };
        state.calls.push(Pending { work, ticket, timeout: self.timeout(), reply, entered });
        state.group.get_or_insert_with(|| self.clone());
        if std::mem::take(&mut state.asleep) {
            inbox.bell.wake();
        }
        Ok(request)
    }
}

impl Requests {
    /// The thread's inbox; starts the thread at the first call.
    fn inbox(&self) -> io::Result<Arc<Inbox>> {
        let mut started = lock(&self.0);
        if let Some(started) = &*started {
            return Ok(started.inbox.clone());
        }
        let inbox = Arc::new(Inbox { state: Mutex::default(), bell: Arc::new(Wake::new()?) });
        let theirs = inbox.clone();
        let thread = sys::spawn("ring-requests", move || serve(&theirs))?;
        *started = Some(Started { inbox: inbox.clone(), thread });
        Ok(inbox)
    }

    /// Has the thread end, which has nothing left to do; None where there is none.
    pub fn close(&self) -> Option<JoinHandle<()>> {
        let Started { inbox, thread } = lock(&self.0).take()?;
        lock(&inbox.state).closing = true;
        inbox.bell.wake();
        Some(thread)
    }
}

impl Inbox {
    /// Sleeps until there is a call; its group, or None if none will come any more.
    fn wait(&self) -> Option<Arc<Group>> {
        loop {
            let mut state = lock(&self.state);
            let group = state.group.take();
            state.asleep = group.is_none();
            if group.is_some() || state.closing {
                return group;
            }
            drop(state);
            let mut entries = [PollEntry::new(self.bell.descriptor(), Interest { read: true, write: false })];
            if sys::poll(&mut entries, None).is_err() {
                std::thread::sleep(PAUSE);
            }
            self.bell.clear();
        }
    }

    /// Hands over what has come.
    fn empty_into<'a>(&self, driver: &mut Driver<'a>) -> bool {
        let mut state = lock(&self.state);
        let (calls, group) = (std::mem::take(&mut state.calls), state.group.take());
        drop(state);
        // The thread has it already.
        drop(group);
        let any = !calls.is_empty();
        calls.into_iter().for_each(|call| driver.add(call));
        any
    }

    /// Whether the thread may sleep: then a call rings from now on.
    fn may_sleep(&self) -> bool {
        let mut state = lock(&self.state);
        state.asleep = state.calls.is_empty();
        state.asleep
    }
}

/// What the request thread does. It holds the group only while there is something to do.
fn serve(inbox: &Inbox) {
    // For the whole thread, whose arithmetic is the group's alone.
    let _mode = FloatMode::ieee();
    let mut waking = Waking::default();
    while let Some(group) = inbox.wait() {
        let mut driver = Driver::with_bell(&group, inbox.bell.clone());
        if let Err(text) = panics::caught(|| drive(inbox, &mut driver, &mut waking)) {
            let error = group.fail_internally(&text);
            inbox.empty_into(&mut driver);
            driver.abandon(&error);
        }
    }
}

/// Runs calls until none has come for a while.
fn drive(inbox: &Inbox, driver: &mut Driver<'_>, waking: &mut Waking) {
    let mut idle_since: Option<Instant> = None;
    loop {
        if inbox.empty_into(driver) {
            idle_since = None;
        }
        let Some(limit) = driver.step(waking, &mut idle_since) else { continue };
        if driver.is_idle() {
            return;
        }
        if inbox.may_sleep() {
            driver.sleep(limit);
        }
    }
}
