//! Serving HTTP on a listener, with limits for those who say nothing.
//!
//! | what | for how long |
//! |---|---|
//! | the head of a request, on a new connection and after each answer | `http.idle_ms` |
//! | the body of a request | [`BODY_TIME`], and a second more for each [`BODY_RATE`] bytes that came |
//! | an answer that the client does not take | [`UNREAD_TIME`], by the system |
//!
//! Requests that wait for their answers, and streams of events, last as long as they like.
//! Invariants: so many connections exist at once (`crate::door`), and one over is answered with 503; the
//! connections end with the server.
//! Not here: what requests mean.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::{BoxError, Router, http::Request};
use bytes::Bytes;
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    server::conn::http1::Builder,
    service::{Service as _, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    service::TowerToHyperService,
};
use socket2::{SockRef, TcpKeepalive};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{Instant, Sleep, sleep_until},
};

use super::problem;
use crate::door::{Door, Guest};

/// Time that the body of a request may take, whatever its length.
const BODY_TIME: Duration = Duration::from_secs(30);
/// Bytes that have to come in each further second.
const BODY_RATE: u64 = 16 << 10;
/// A client that takes nothing for so long, or whose host says nothing, is gone.
const UNREAD_TIME: Duration = Duration::from_secs(60);

/// How connections are bounded.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How many exist at once.
    pub(super) connections: usize,
    /// In what time the head of a request has to come.
    pub(super) idle: Duration,
}

/// Serves until the task is dropped.
pub(super) async fn serve(listener: TcpListener, router: Router, limits: Limits) {
    let door = Door::new("HTTP", limits.connections);
    let mut builder = Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.idle);
    let builder = Arc::new(builder);
    let mut tasks = JoinSet::new();
    loop {
        let Guest { stream, address, place } = door.next(&listener).await;
        while tasks.try_join_next().is_some() {}
        let Some(place) = place else {
            door.send_away(stream, address, problem::no_room());
            continue;
        };
        let (builder, router) = (builder.clone(), router.clone());
        tasks.spawn(async move {
            if let Err(error) = connection(stream, &builder, router).await {
                tracing::debug!(%address, %error, "a connection over HTTP ended");
            }
            drop(place);
        });
    }
}

async fn connection(stream: TcpStream, builder: &Builder, router: Router) -> Result<(), BoxError> {
    prepare(&stream)?;
    let service = TowerToHyperService::new(router);
    let timed = service_fn(move |request: Request<Incoming>| {
        service.call(request.map(|body| TimedBody::new(body, BODY_TIME)))
    });
    builder.serve_connection(TokioIo::new(stream), timed).await?;
    Ok(())
}

/// Has the system notice a client that is gone without a word, or takes nothing.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(UNREAD_TIME))?;
    socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(UNREAD_TIME).with_interval(UNREAD_TIME))
}

/// The body of a request, which fails when it comes too slowly.
struct TimedBody<B> {
    inner: B,
    begin: Instant,
    time: Duration,
    came: u64,
    late: Pin<Box<Sleep>>,
}

impl<B> TimedBody<B> {
    fn new(inner: B, time: Duration) -> Self {
        let begin = Instant::now();
        Self { inner, begin, time, came: 0, late: Box::pin(sleep_until(begin + time)) }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for TimedBody<B>
where
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        let Poll::Ready(frame) = Pin::new(&mut this.inner).poll_frame(cx) else {
            ready!(this.late.as_mut().poll(cx));
            let error = io::Error::new(io::ErrorKind::TimedOut, "the body came too slowly");
            return Poll::Ready(Some(Err(error.into())));
        };
        let frame = frame.map(|frame| frame.map_err(Into::into));
        if let Some(Ok(frame)) = &frame {
            this.came += frame.data_ref().map_or(0, |data| data.len() as u64);
            let more = Duration::from_secs(this.came / BODY_RATE);
            this.late.as_mut().reset(this.begin + this.time + more);
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt as _, Full, StreamBody};

    use super::*;

    #[tokio::test]
    async fn a_body_that_comes_is_whole_and_one_that_does_not_fails() {
        let whole = TimedBody::new(Full::new(Bytes::from_static(b"whole")), BODY_TIME);
        assert_eq!(whole.collect().await.expect("it is there").to_bytes(), "whole");
        let never = futures_util::stream::pending::<Result<Frame<Bytes>, io::Error>>();
        let late = TimedBody::new(StreamBody::new(never), Duration::from_millis(10));
        let error = late.collect().await.expect_err("nothing comes");
        assert!(error.to_string().contains("slowly"), "{error}");
    }
}
