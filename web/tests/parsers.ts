/** What each parser makes of each input, for a comparison with the other implementation: lines `[parser, input]` in, one line of JSON for each out. */

import { CORE_SCHEMA, load, YAML11_SCHEMA } from 'js-yaml'
import { readFileSync, writeSync } from 'node:fs'
import { readBlob, readExport } from '../src/core/blob_reading.ts'
import { base64url, byCodePoints, type Bytes, fromBase64url, join, parseCanonical, refuse, Refused, utf8 } from '../src/core/bytes.ts'
import { parseCard } from '../src/core/cards.ts'
import { readCar, writeCar } from '../src/core/car.ts'
import { cidBytes, cidFromBytes, cidOf, keyOfName, parseCid, RAW } from '../src/core/cid.ts'
import { clockMs } from '../src/core/clock.ts'
import { readNode, readUnixFS } from '../src/core/dagpb.ts'
import { SharedFolder } from '../src/core/folder.ts'
import { frontMatter } from '../src/core/front_matter.ts'
import { editFile } from '../src/core/header_edit.ts'
import { readRecord, targetOf } from '../src/core/ipns.ts'
import { isKey, isScope, keyOfForeignName, splitConflictName } from '../src/core/keys.ts'
import { parseFile, readTags, renderFile, renderLines, writeTags } from '../src/core/memory_file.ts'
import { merge3 } from '../src/core/merge3.ts'
import { readMove, readVault } from '../src/core/program_events.ts'
import { type Part, readScopeTree } from '../src/core/scope_tree.ts'
import { partItems } from '../src/core/session_items.ts'
import { readName } from '../src/core/state.ts'
import { secretOfWords, signatureBytes } from '../src/core/wallet.ts'
import { lineOf, normalTs, parseLine, parseLines, splitOwnId } from '../src/core/timeline.ts'

type Parser = (input: any) => unknown

const bytes = (text: string): Bytes => fromBase64url(text)

const decoded = (data: Bytes): string => new TextDecoder('utf-8', { ignoreBOM: true }).decode(data)

/** Pairs of a loaded mapping, in one order, whatever kind of object the library makes. */
const pairsOf = (value: unknown): [string, unknown][] =>
  (value instanceof Map ? [...value] : Object.entries((value ?? {}) as object)).sort(([a], [b]) => byCodePoints(a, b))

const parsers: Readonly<Record<string, Parser>> = {
  memory: input => {
    const file = parseFile(bytes(input))
    return [file.fields, file.body, renderFile(file)]
  },
  render: input => renderFile(input),
  edit: ([data, changes, body, stamps]) => decoded(editFile(bytes(data), new Map(changes), body, new Map(stamps))),
  front: frontMatter,
  // A pack of a shared folder with one block and so many bytes of garbage behind it: whether that block is found, and whether another is.
  pack: ([byte, length]) => {
    const [here, absent] = ['here', 'absent'].map(text => cidOf(RAW, utf8(text)).text) as [string, string]
    const car = writeCar({ roots: [], blocks: [[here, utf8('here')]] })
    const path = `packs/${'0'.repeat(64)}.car`
    const folder = new SharedFolder(new Map([[path, join(car, new Uint8Array(length).fill(byte))]]))
    return [folder.has(here), folder.block(here) !== null, folder.has(absent), folder.block(absent)]
  },
  // What a YAML library, under its YAML 1.1 and 1.2 rules, takes our header lines for.
  loaded: input => [CORE_SCHEMA, YAML11_SCHEMA].map(schema => [...pairsOf(load(renderLines(input), { schema }))]),
  tags: input => [readTags(input), writeTags(readTags(input))],
  merge: ([base, a, b]) => {
    const merged = merge3(bytes(base), bytes(a), bytes(b))
    return merged === null ? null : decoded(merged)
  },
  lines: ([data, day]) => parseLines(bytes(data), day).map(lineOf),
  instant: normalTs,
  own_id: input => {
    const split = splitOwnId(input)
    return split && [split.device, split.n]
  },
  key: input => {
    const split = splitConflictName(input)
    const { key, origin } = keyOfForeignName(input)
    return [isKey(input), isScope(input), key, origin, split && [split.key, split.hash]]
  },
  entry: input => {
    const { kind, scope, ctx } = readName(input)
    return [kind, scope, ctx]
  },
  cid: input => {
    const cid = parseCid(input)
    // Text is base32 here; names of keys are told in base36 elsewhere.
    return [...cidBytes(cid)]
  },
  cid_bytes: input => cidFromBytes(bytes(input)).text,
  ipns_name: input => [...keyOfName(input)],
  clock: clockMs,
  card: input => parseCard(bytes(input)),
  canonical: input => parseCanonical(bytes(input)) !== undefined,
  event: input => {
    const event = parseLine(utf8(input))
    const [move, vault] = [readMove(event), readVault(event)]
    return [move && [move.id, move.by, move.at, move.left, move.to], vault && [vault.address, vault.key_number, vault.name]]
  },
  node: input => {
    const { links, data } = readNode(bytes(input))
    return [links.map(one => [one.name, `${one.size}`, one.cid.text]), data && base64url(data)]
  },
  unixfs: input => {
    const it = readUnixFS(bytes(input))
    return [it.type, base64url(it.data ?? new Uint8Array()), it.filesize === null ? null : `${it.filesize}`, it.blocksizes.map(String), `${it.hashType ?? 0}`, `${it.fanout ?? 0}`]
  },
  car: input => {
    const { roots, blocks } = readCar(bytes(input))
    return [roots, blocks.map(([cid]) => cid)].map(some => some.map(cid => base64url(cidBytes(parseCid(cid)))))
  },
  record: async ([name, data]) => {
    const { value, sequence, validUntil, ttlNs } = await readRecord(name, bytes(data))
    return [value, `${sequence}`, `${validUntil}`, `${ttlNs}`]
  },
  target: value => {
    const to = targetOf({ value, sequence: 0n, validUntil: 0n, ttlNs: 0n, bytes: new Uint8Array() })
    return to === null ? refuse('format') : (to.name ?? [...cidBytes(parseCid(to.cid))])
  },
  pins: ([file, data]) => {
    const folder = new SharedFolder(new Map([[`pins/${file}`, bytes(data)]]), 7)
    return ['a', 'é'].map(name => folder.pins(name).map(pin => [pin.cid, pin.created]))
  },
  words: input => [...secretOfWords(input)],
  signature: input => [...signatureBytes(input)],
  base64url: input => [...bytes(input)],
  scope_file: input => {
    const { card, forgotten, problems } = readScopeTree(new Map([['scopes/work/scope.json', bytes(input)], ['memory/a.md', utf8('a')]])).get('work') as Part
    return [card, forgotten, problems.length]
  },
  session: ([one, other]) =>
    partItems('chat', [['0', one], ['1', other]].map(([i, body]) => ({ key: `session-chat-00aabbccddeeff11-${i}`, file: utf8(`---\ntype: session\nsession: chat\n---\n\n${body}\n`) })))
      .map(({ place, item }) => [place, item]),
  blob: input => asLists(readBlob(input)),
  export: input => asLists(readExport(input))
}

const asLists = (read: ReturnType<typeof readBlob>): unknown => [[...read.files].sort(), read.more, read.others, read.events.map(lineOf), read.index, read.problems.length]

async function judged(parser: string, input: unknown): Promise<unknown> {
  try {
    return await (parsers[parser] as Parser)(input)
  } catch (error) {
    if (error instanceof Refused) return { refused: true }
    return { crashed: error instanceof Error ? `${error.name}: ${error.message}` : String(error) }
  }
}

const out: string[] = []
for (const line of readFileSync(process.argv[2] as string, 'utf8').split('\n')) {
  if (line === '') continue
  const [parser, input] = JSON.parse(line)
  out.push(JSON.stringify((await judged(parser, input)) ?? null))
}
const all = utf8(`${out.join('\n')}\n`)
for (let at = 0; at < all.length; ) at += writeSync(1, all, at)
