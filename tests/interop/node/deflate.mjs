// Opens raw deflate streams with four inflaters of JavaScript by the rules of format section 3, and prints their verdicts:
// what a stream comes to as {letter, length}, or null. One JSON line for each stream, in order.
import fs from "node:fs";
import zlib from "node:zlib";

const MOST = 983040;

async function platform(stream) {
  const pipe = new DecompressionStream("deflate-raw");
  const writer = pipe.writable.getWriter();
  writer.write(stream).catch(() => {});
  writer.close().catch(() => {});
  const parts = [];
  let size = 0;
  for await (const part of pipe.readable) {
    size += part.length;
    if (size > MOST) throw new Error("too long");
    parts.push(part);
  }
  return Buffer.concat(parts);
}

const inflaters = {
  zlib: (stream) => zlib.inflateRawSync(stream, { maxOutputLength: MOST + 1 }),
  platform,
};

async function add(name, make) {
  try {
    inflaters[name] = make(await import(name));
  } catch {
    // It is not installed: the test says so.
  }
}

await add("pako", (pako) => (stream) => {
  const inflate = new pako.Inflate({ raw: true });
  const parts = [];
  let size = 0;
  inflate.onData = (part) => {
    size += part.length;
    if (size > MOST) throw new Error("too long");
    parts.push(part);
  };
  inflate.push(stream, true);
  if (inflate.err || !inflate.ended) throw new Error("not a stream");
  return Buffer.concat(parts);
});

await add("fflate", (fflate) => (stream) => {
  const parts = [];
  let size = 0;
  const inflate = new fflate.Inflate((part) => {
    size += part.length;
    if (size > MOST) throw new Error("too long");
    parts.push(part);
  });
  inflate.push(stream, true);
  return Buffer.concat(parts);
});

// Most inflaters cannot tell what follows a stream, so: without its last byte it must not finish.
async function open(inflate, stream) {
  let out;
  try {
    out = await inflate(stream);
  } catch {
    return null;
  }
  if (out.length > MOST || stream.length === 0) return null;
  try {
    await inflate(stream.subarray(0, -1));
    return null;
  } catch {
    return { letter: String.fromCharCode(out[0]), length: out.length, pure: out.every((byte) => byte === out[0]) };
  }
}

const { streams } = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
for (const { stream } of streams) {
  const bytes = Uint8Array.from(Buffer.from(stream, "hex"));
  const verdicts = {};
  for (const [name, inflate] of Object.entries(inflaters)) verdicts[name] = await open(inflate, bytes);
  console.log(JSON.stringify(verdicts));
}
