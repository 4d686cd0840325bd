// States: names of entries, values, the prefix tree, commits, join (FORMAT.md 5, 6, 6.1).

import {
  byCodePoints,
  canonical,
  compare,
  fields,
  fromB64,
  hex,
  isHex,
  join,
  need,
  number,
  parseCanonical,
  refuse,
  sha256,
  sortedTexts,
  unlessRefused
} from './bytes.mjs'
import { verify } from './keys.mjs'
import { CARD, COMMIT, MEMORY, SEGMENT } from './sealed.mjs'

const RESERVED = /^(memory|con|prn|aux|nul|com[0-9]|lpt[0-9])$/
const MOST_COMMIT = 384 << 10
const MOST_LEAF = 48 << 10
const MOST_OBJECT = 1 << 20

export const isKey = text => /^[a-z0-9][a-z0-9_-]{0,63}$/.test(text) && !RESERVED.test(text)
export const isToken = text =>
  isKey(text) && !['timeline', 'scopes', 'all', 'global'].includes(text) && !/^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(text)

function isDay(text) {
  if (!/^(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(text)) return false
  const day = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(day.getTime()) && day.toISOString().startsWith(text)
}

const isCount = text => /^(0|[1-9][0-9]{0,15})$/.test(text) && Number.isSafeInteger(Number(text))

/** What an entry is: its kind, scope, and the type and context under which its bodies are sealed. */
export function readName(name) {
  const [kind, ...parts] = name.split('/')
  let found
  need(!parts.includes(''), 'format', 'an empty part')
  if (kind === 'c' && parts.length === 1) found = { kind, scope: parts[0], type: CARD, ctx: parts[0] }
  if (kind === 'm' && parts.length === 1) found = { kind, scope: '', key: parts[0], type: MEMORY, ctx: parts[0] }
  if (kind === 'm' && parts.length === 2) found = { kind, scope: parts[0], key: parts[1], type: MEMORY, ctx: parts.join('/') }
  if (kind === 't' && (parts.length === 3 || parts.length === 4)) {
    const [day, dev, i] = parts.slice(-3)
    need(isDay(day) && isHex(dev, 8) && isCount(i), 'format', 'not a segment')
    found = { kind, scope: parts.length === 4 ? parts[0] : '', day, dev, i: Number(i), type: SEGMENT, ctx: parts.join('/') }
  }
  need(found !== undefined, 'format', 'not the name of an entry')
  if (found.kind === 'm') need(isKey(found.key), 'format', 'not a key')
  if (found.scope !== '' || kind === 'c') need(isToken(found.scope), 'format', 'not a scope')
  return found
}

export function readDot(text) {
  const [dev, n, ...more] = text.split('-')
  need(isHex(dev, 8) && more.length === 0 && isCount(n ?? '') && n !== '0', 'format', 'not a dot')
  return { text, dev, n: Number(n) }
}

function location(loc) {
  need(Array.isArray(loc) && loc.length === 3, 'format', 'not a location')
  need((loc[0] === '' || isHex(loc[0], 8)) && isHex(loc[1], 32), 'format', 'not a location')
  need(Number.isSafeInteger(loc[2]) && loc[2] >= 0 && loc[2] <= MOST_OBJECT, 'format', 'not a size')
}

/** The form of one value; `published`: it stands in a root, so it has a signature and, when live, a location. */
function checkValue(name, dot, value, published) {
  const live = value?.kind === 'live'
  need(live || value?.kind === 'forgotten', 'format', 'neither live nor forgotten')
  const memory = name.kind === 'm'
  const must = ['b', 'body', 'h', 'kind', ...(published ? ['s'] : []), ...(published && live ? ['loc'] : [])]
  fields(value, must, [...(published ? [] : ['s']), ...(live ? ['loc', ...(memory ? ['base', 'of'] : [])] : [])])
  need(isHex(value.h, 8), 'format', 'not a clock')
  need(Array.isArray(value.b) && value.b.length <= 4 && value.b.every(one => isHex(one, 16)), 'format', 'not a list of bases')
  need(new Set(value.b).size === value.b.length, 'format', 'a base twice')
  need(value.b.length === 0 || (live && memory), 'format', 'bases where there are none')
  need(live ? isHex(value.body, 32) : value.body === null, 'format', 'a body where there is none')
  if (name.kind === 't') need(live && name.dev === dot.dev, 'format', "a segment forgotten, or another device's")
  if (value.loc !== undefined) location(value.loc)
  if (value.base !== undefined) {
    need(value.b.length > 0, 'format', 'a base beside no list of bases')
    location(value.base)
  }
  if (value.of !== undefined) need((value.of === 'foreign' || isHex(value.of, 8)) && value.of !== dot.dev, 'format', 'not an author')
  if (value.s !== undefined) fromB64(value.s, 64)
}

/** One entry: dots with values, each in its form. */
export function checkEntry(nameText, entry, published = true) {
  const name = readName(nameText)
  need(entry !== null && typeof entry === 'object' && !Array.isArray(entry) && Object.keys(entry).length > 0, 'format', 'no entry')
  const count = new Map()
  for (const [text, value] of Object.entries(entry)) {
    const dot = readDot(text)
    count.set(dot.dev, (count.get(dot.dev) ?? 0) + 1)
    need(count.get(dot.dev) <= 4, 'format', 'five dots of one device')
    checkValue(name, dot, value, published)
  }
}

/** What the device of a dot signed. */
export function valueMessage(name, dot, value, tag) {
  const said = { b: value.b, body: value.body, dot, e: name, h: value.h, kind: value.kind, vault: hex(tag) }
  if (value.of !== undefined) said.of = value.of
  return join('ipfsmem/v1/value', [0], canonical(said))
}

export const seenMessage = (dev, n, r, tag) =>
  join('ipfsmem/v1/seen', [0], tag, Buffer.from(dev, 'hex'), number(n, 8), Buffer.from(r, 'hex'))

const signedBy = (keys, message, s) => keys.some(key => verify(Buffer.from(key, 'hex'), message, fromB64(s, 64)))

// --- the prefix tree ---

const labelOf = name => hex(sha256(name))
const sizeOf = (name, entry) => Buffer.byteLength(`${JSON.stringify(name)}:${canonical(entry)}`)
const isLeaf = (count, bytes, depth) => count <= 1 || (count <= 64 && bytes <= MOST_LEAF) || depth === 16

/** All nodes of a state by prefix, and its digest. */
export function buildTree(entries) {
  const nodes = new Map()
  const build = (all, prefix) => {
    let node
    if (isLeaf(
      all.length,
      all.reduce((sum, one) => sum + one.size, 0),
      prefix.length
    )) {
      node = { e: Object.fromEntries(all.map(one => [one.name, one.entry])) }
    } else {
      node = { n: {} }
      for (const digit of '0123456789abcdef') {
        const below = all.filter(one => one.label[prefix.length] === digit)
        if (below.length) node.n[digit] = build(below, prefix + digit)
      }
    }
    const text = canonical(node)
    nodes.set(prefix, text)
    return hex(sha256(text))
  }
  const all = [...entries].map(([name, entry]) => ({ name, entry, label: labelOf(name), size: sizeOf(name, entry) }))
  return { digest: build(all, ''), nodes }
}

/**
 * All entries below a digest. `read(prefix, hash)` gives the JSON of a node, or null where nothing that has this hash is to
 * be had: then all else is checked, and Refused of kind `damaged`.
 */
export function readTree(digest, read) {
  const entries = new Map()
  let damaged = false
  const walk = (prefix, hash) => {
    const text = read(prefix, hash)
    if (text === null || hex(sha256(text)) !== hash) {
      damaged = true
      return null
    }
    const node = parseCanonical(text)
    if (Object.hasOwn(node ?? {}, 'e')) {
      const inside = fields(fields(node, ['e']).e, Object.keys(node.e ?? {}))
      const names = Object.keys(inside)
      let size = 0
      for (const name of names) {
        need(labelOf(name).startsWith(prefix), 'format', 'an entry outside its prefix')
        size += sizeOf(name, inside[name])
        entries.set(name, inside[name])
      }
      need(isLeaf(names.length, size, prefix.length), 'format', 'a leaf that the rule does not make')
      need(names.length > 0 || prefix === '', 'format', 'an empty leaf below the top')
      return { count: names.length, size }
    }
    const children = fields(fields(node, ['n']).n, Object.keys(node.n ?? {}))
    const digits = Object.keys(children)
    need(digits.length > 0 && prefix.length < 16, 'format', 'an inner node that the rule does not make')
    for (const digit of digits) need(/^[0-9a-f]$/.test(digit) && isHex(children[digit], 32), 'format', 'not a child')
    const below = digits.map(digit => walk(prefix + digit, children[digit]))
    if (below.includes(null)) return null
    const sum = below.reduce((all, one) => ({ count: all.count + one.count, size: all.size + one.size }))
    need(!isLeaf(sum.count, sum.size, prefix.length), 'format', 'an inner node that the rule does not make')
    return sum
  }
  walk('', digest)
  need(!damaged, 'damaged', 'a part of the state cannot be read')
  return entries
}

export const nodePath = prefix => (prefix === '' ? 's/top' : `s/${[...prefix].join('/')}`)

// --- commits ---

/** The JSON of a commit in its form. */
function parseCommit(json, tag) {
  const it = fields(parseCanonical(json), ['c', 'ctx', 'dev', 'ek', 'h', 'prev', 'ring', 'state', 'v', 'vault'])
  need(it.v === 1 && it.vault === hex(tag), 'format', 'of another vault')
  need(Number.isSafeInteger(it.c) && it.c >= 1 && isHex(it.dev, 8) && isHex(it.h, 8), 'format', 'not a commit')
  need((it.ek === '' || isHex(it.ek, 8)) && isHex(it.ring, 32) && isHex(it.state, 32), 'format', 'not a commit')
  need(sortedTexts(it.prev).every(one => isHex(one, 32)), 'format', 'not a list of commits')
  fields(it.ctx, Object.keys(it.ctx ?? {}))
  for (const [dev, pair] of Object.entries(it.ctx)) {
    need(isHex(dev, 8) && Array.isArray(pair) && pair.length === 3, 'format', 'not a pair')
    need(Number.isSafeInteger(pair[0]) && pair[0] >= 1 && isHex(pair[1], 8), 'format', 'not a pair')
    fromB64(pair[2], 64)
  }
  return { ...it, json, hash: hex(sha256(json)) }
}

/**
 * The commit of a root, verified with a ring that knows its device; ids without a key are left out of `ctx` and listed.
 * `head`: the bytes of head.ipm, or of commit.json in a plain vault.
 */
export function readCommit(head, ring, keyring) {
  let raw, signature
  need(head.length <= MOST_COMMIT, 'limit', 'a commit of more than 384 KiB')
  if (ring.plain) {
    const file = fields(parseCanonical(head), ['k', 's'])
    raw = fromB64(file.k)
    signature = fromB64(file.s, 64)
  } else {
    let key, payload
    for (key of ring.readable) if ((payload = unlessRefused(() => key.open(COMMIT, '', head)))) break
    need(payload, 'open', 'no key opens this commit')
    signature = payload.subarray(0, 64)
    raw = payload.subarray(64)
    need(unlessRefused(() => parseCanonical(raw))?.ek === key.id, 'format', 'it names another key than the one it is under')
  }
  const commit = parseCommit(raw, ring.tag)
  need(ring.plain === (commit.ek === ''), 'format', 'the commit of a vault of the other kind')
  need(commit.ring === hex(sha256(keyring)), 'format', 'it names another ring')
  const member = ring.said.members.get(commit.dev)
  need(member && member.role !== 'reader', 'member', `${commit.dev} is no member who may write`)
  need(signedBy([member.sign], join('ipfsmem/v1/commit', [0], raw), signature.toString('base64url')), 'signature', 'not signed by its device')
  const lacking = []
  const ctx = new Map()
  for (const [dev, [n, r, s]] of Object.entries(commit.ctx)) {
    const keys = ring.said.keysOf.get(dev)
    if (!keys) lacking.push(dev)
    else {
      need(signedBy(keys, seenMessage(dev, n, r, ring.tag), s), 'signature', `a counter of ${dev} that it did not sign`)
      ctx.set(dev, { n, r, s })
    }
  }
  return { ...commit, seen: ctx, all: new Map(Object.entries(commit.ctx).map(([dev, [n]]) => [dev, n])), lacking }
}

/** The state under a verified commit: covered by its ctx, each dot in one entry, every value signed. Ids without a key are left out. */
export function checkedState(entries, commit, ring) {
  const where = new Map()
  const out = new Map()
  for (const [name, entry] of entries) {
    checkEntry(name, entry)
    const kept = {}
    for (const [dotText, value] of Object.entries(entry)) {
      const dot = readDot(dotText)
      need(!where.has(dotText), 'format', `${dotText} in two entries`)
      where.set(dotText, name)
      need(dot.n <= (commit.all.get(dot.dev) ?? 0), 'format', `${dotText} is not covered by ctx`)
      const keys = ring.said.keysOf.get(dot.dev)
      if (!keys) continue
      need(signedBy(keys, valueMessage(name, dotText, value, ring.tag), value.s), 'signature', `${dotText} was not signed by its device`)
      kept[dotText] = value
    }
    if (Object.keys(kept).length) out.set(name, kept)
  }
  return { entries: out, seen: commit.seen }
}

// --- join ---

const identity = value => canonical({ b: value.b, body: value.body, h: value.h, kind: value.kind, of: value.of ?? null })

/**
 * Of two sightings of one dot the one that is kept. `passes(name, value, field, loc)`: whether the object behind a location
 * is what was meant; `order(loc)`: (epoch, EK id, hash, size).
 */
function oneOf(name, mine, theirs, passes, order) {
  const out = { ...mine }
  if (byCodePoints(theirs.s ?? '', mine.s ?? '') > 0) out.s = theirs.s
  for (const field of ['loc', 'base']) {
    if (theirs[field] === undefined || canonical(theirs[field]) === canonical(mine[field] ?? null)) continue
    if (mine[field] === undefined) out[field] = theirs[field]
    else {
      const [ours, other] = [passes(name, mine, field, mine[field]), passes(name, theirs, field, theirs[field])]
      if (other && (!ours || compare(order(theirs[field]), order(mine[field])) > 0)) out[field] = theirs[field]
    }
  }
  return out
}

/** Values of an entry after a join. */
const MOST_VALUES = 800

/**
 * What of an entry finds room; `letIn(dev)`: [how near to a root who let it in stands, the admins who did]. First the newest of
 * each device that a root let in, then of each who let in one in turn, their devices' newest first, then the greater (HLC, dot).
 */
export function fitting(entry, letIn, most = MOST_VALUES) {
  const written = new Map()
  const shares = new Map()
  const order = []
  const newest = Object.keys(entry)
    .map(text => ({ text, dot: readDot(text), h: entry[text].h }))
    .sort((a, b) => -compare([a.h, a.dot.dev, a.dot.n], [b.h, b.dot.dev, b.dot.n]))
  if (newest.length <= most) return entry
  for (const [at, { text, dot }] of newest.entries()) {
    const before = written.get(dot.dev) ?? 0
    written.set(dot.dev, before + 1)
    const [rank, by] = letIn(dot.dev)
    if (rank === 0 && before === 0) order.push({ text, place: [-1, 0, '', at] })
    else {
      const share = `${rank} ${by}`
      if (!shares.has(share)) shares.set(share, { rank, by, values: [] })
      shares.get(share).values.push({ text, at: [before, at] })
    }
  }
  for (const { rank, by, values } of shares.values()) {
    values.sort((a, b) => compare(a.at, b.at)).forEach(({ text }, turn) => order.push({ text, place: [turn, rank, by, 0] }))
  }
  order.sort((a, b) => compare(a.place, b.place))
  return Object.fromEntries(order.slice(0, most).map(({ text }) => [text, entry[text]]))
}

/** Both joined; Refused of kind `held` when one dot or one pair says two things. */
export function joinStates(a, b, passes = () => true, order = loc => loc, letIn = () => [0, '']) {
  const places = new Map()
  for (const state of [a, b]) {
    for (const [name, entry] of state.entries) {
      for (const [dot, value] of Object.entries(entry)) {
        const said = `${name} ${identity(value)}`
        need((places.get(dot) ?? said) === said, 'held', `${dot} says two things`)
        places.set(dot, said)
      }
    }
  }
  const seen = new Map(a.seen)
  for (const [dev, pair] of b.seen) {
    const here = seen.get(dev)
    if (here && here.n === pair.n && here.r !== pair.r) refuse('held', `${dev} drew two numbers at ${pair.n}`)
    const s = here && here.n === pair.n ? [here.s, pair.s].sort(byCodePoints)[1] : undefined
    if (!here || here.n < pair.n) seen.set(dev, pair)
    else if (s !== undefined) seen.set(dev, { ...here, s })
  }
  const covers = (state, dot) => (state.seen.get(dot.dev)?.n ?? 0) >= dot.n
  const entries = new Map()
  for (const name of new Set([...a.entries.keys(), ...b.entries.keys()])) {
    const [mine, theirs] = [a.entries.get(name) ?? {}, b.entries.get(name) ?? {}]
    const kept = {}
    for (const dotText of new Set([...Object.keys(mine), ...Object.keys(theirs)])) {
      const dot = readDot(dotText)
      if (mine[dotText] && theirs[dotText]) kept[dotText] = oneOf(name, mine[dotText], theirs[dotText], passes, order)
      else if (mine[dotText] && !covers(b, dot)) kept[dotText] = mine[dotText]
      else if (theirs[dotText] && !covers(a, dot)) kept[dotText] = theirs[dotText]
    }
    const stays = fitting(kept, letIn)
    if (Object.keys(stays).length) entries.set(name, stays)
  }
  return { entries, seen }
}

