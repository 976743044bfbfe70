// What the page does to the cluster besides calls: each after a question, each once.
//
// Invariant: nothing is ended before somebody has said so in a dialog, whose first choice is not to.

import { send, path } from "./api.js";
import { h, patch } from "./dom.js";
import { trouble } from "./parts.js";

/** Asks, does it when the answer is yes, and shows why if it cannot be done. */
function ask({ title, detail, word, act, done }) {
  const dialog = document.createElement("dialog");
  const draw = (problem, busy) =>
    patch(dialog, [
      h("h2", { id: "question" }, title),
      h("p", null, detail),
      problem && trouble(problem),
      h(
        "div",
        { class: "buttons" },
        h("button", { type: "button", autofocus: true, onclick: () => dialog.close() }, "Leave it"),
        h("button", { type: "button", class: "danger", disabled: busy, onclick: confirmed }, word),
      ),
    ]);
  const confirmed = async () => {
    draw(null, true);
    try {
      await act();
      dialog.close();
      done();
    } catch (problem) {
      draw(problem, false);
    }
  };
  dialog.setAttribute("aria-labelledby", "question");
  dialog.addEventListener("close", () => dialog.remove());
  draw(null, false);
  document.getElementById("dialogs").append(dialog);
  dialog.showModal();
}

/** Cancels a blocked call. */
export function cancelCall(invocation, done) {
  const { invocation: id, method, object } = invocation;
  ask({
    title: `Cancel call ${id}?`,
    detail: `${method} of ${object} is ended where it waits. Its caller is told that an operator did it.`,
    word: "Cancel the call",
    act: () => send("DELETE", path("invocations", id)),
    done,
  });
}

/** Forgets a fault of a handler. */
export function dropFault({ fault, object, handler }, done) {
  ask({
    title: `Drop fault ${fault}?`,
    detail: `What ${handler} of ${object} was called with is forgotten, and it is not called once more.`,
    word: "Drop the fault",
    act: () => send("DELETE", path("faults", ...object.split("/"), fault)),
    done,
  });
}

/** Calls a handler that failed once more. */
export function retryFault({ fault, object, handler }, done) {
  ask({
    title: `Retry fault ${fault}?`,
    detail: `${handler} of ${object} is called once more, with the arguments that it had.`,
    word: "Call the handler",
    act: () => send("POST", path("faults", ...object.split("/"), fault, "retry")),
    done,
  });
}

/** Ends a session. */
export function closeSession(session, done) {
  ask({
    title: `Close session ${session.session}?`,
    detail: `Its permits (${session.permits}) go back, its blocked calls are cancelled, and its client (${session.principal}) finds it gone.`,
    word: "Close the session",
    act: () => send("DELETE", path("sessions", session.session)),
    done,
  });
}
