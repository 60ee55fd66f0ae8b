// Keeps the secrets of a file, a line of hexadecimal digits each, in all kinds of objects.
"use strict";
const fs = require("fs");

class Account {
    #hidden;
    constructor(secret) {
        this.secret = secret;
        this.text = secret.toString("hex");
        this.#hidden = this.text + "hidden";
    }
    shown() { return this.#hidden; }
}

const byText = {}, byKey = new Map(), texts = new Set(), weak = new WeakMap(), kept = [];
const numbers = [], wide = [], sparse = [];

async function waitFor(secret) {
    const text = secret.toString("hex") + "waiting";
    await new Promise(() => {});
    return text;
}

function* generate(secret) {
    const text = secret.toString("latin1");
    yield text;
    yield secret;
}

function keep(secret) {
    const text = secret.toString("hex"), latin = secret.toString("latin1");
    const number = secret.readDoubleLE(0), big = secret.readBigUInt64LE(0);
    const account = new Account(secret), generator = generate(secret);
    generator.next();
    byText[text] = secret;
    byKey.set(latin, account);
    byKey.set(big, text);
    texts.add(text + "in a set");
    weak.set(account, latin);
    numbers.push(number);
    wide.push(text + "\u0151");
    sparse[secret.readUInt32LE(0) >>> 1] = latin;
    const dynamic = {};
    dynamic["of" + text] = big;
    waitFor(secret);
    process.env["OF" + kept.length] = text.slice(0, 60);
    kept.push([dynamic, generator, () => text, [number, big], new Uint8Array(secret),
        new WeakRef(account), Symbol(text), text.substring(3), new RegExp(text),
        Buffer.from(text, "utf16le"), text.toUpperCase(), new Error(text)]);
}

for (const line of fs.readFileSync(process.argv[2], "ascii").trim().split("\n"))
    keep(Buffer.from(line, "hex"));
setTimeout(() => kept, 1e9);
setTimeout(() => console.log("ready"), 100);
