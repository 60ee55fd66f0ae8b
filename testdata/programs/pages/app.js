// The program of docs/node.md: a server that keeps sessions with a Buffer each.
class Order {}
class Session {
  constructor() {
    this.data = { buffer: Buffer.alloc(8192) };
    this.order = new Order();
  }
}
const sessions = new Map();
for (let i = 0; i < 900; i++) sessions.set(`user:${i}`, new Session());
process.stdin.once("data", () => process.exit(sessions.size));
console.log("ready");
