// A terminal whose program is the cockpit: binary messages are its bytes, text messages its size. When the connection
// is lost, the page connects again, each time after a longer wait, and the cockpit opens anew.
"use strict";
const terminal = new Terminal({ allowProposedApi: false, fontFamily: "monospace", scrollback: 0 });
const fit = new FitAddon.FitAddon();
const notice = document.getElementById("notice");
const encoder = new TextEncoder();
const ENDED = 4000; // the program ended: nothing is to be connected again
let socket = null;
let wait = 500;

function say(text) { notice.textContent = text; }

function send(data) {
  if (socket !== null && socket.readyState === WebSocket.OPEN) socket.send(data);
}

function sendSize() { send(JSON.stringify({ columns: terminal.cols, rows: terminal.rows })); }

function connect() {
  const address = new URL("session", window.location.href);
  address.protocol = address.protocol === "https:" ? "wss:" : "ws:";
  socket = new WebSocket(address);
  socket.binaryType = "arraybuffer";
  socket.onopen = () => { wait = 500; say(""); terminal.reset(); fit.fit(); sendSize(); terminal.focus(); };
  // The server sends the next piece when this one is drawn.
  socket.onmessage = (message) => terminal.write(new Uint8Array(message.data), () => send("{}"));
  socket.onclose = (event) => {
    if (event.code === ENDED) { say((event.reason || "The cockpit was closed.") + " Press Enter to open it again."); return; }
    say("The connection is lost. Connecting again …");
    window.setTimeout(connect, wait);
    wait = Math.min(wait * 2, 15000);
  };
}

terminal.loadAddon(fit);
terminal.open(document.getElementById("screen"));
terminal.onData((text) => {
  if (socket.readyState === WebSocket.CLOSED) { if (text === "\r" && notice.textContent.includes("Enter")) connect(); return; }
  send(encoder.encode(text));
});
terminal.onBinary((text) => send(Uint8Array.from(text, (each) => each.charCodeAt(0))));
terminal.onResize(sendSize);
window.addEventListener("resize", () => fit.fit());
connect();
