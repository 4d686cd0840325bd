/** Commits: a device's signed statement of a whole state (FORMAT.md 6 and 7). */

import {
  anyFields,
  base64url,
  type Bytes,
  canonical,
  fields,
  fromBase64url,
  hex,
  isHex,
  isObject,
  join,
  need,
  parseCanonical,
  refuse,
  sha256,
  sortedTexts,
  unlessRefused
} from './bytes.ts'
import { checkAll, type CheckAll, type Signed } from './curves.ts'
import type { Ring } from './ring.ts'
import { ObjectType, openWithAny } from './sealed.ts'
import { checkEntry, type Entry, readDot, type Seen, seenMessage, type State, valueMessage } from './state.ts'

const MOST_COMMIT = 384 << 10

export type Commit = {
  readonly c: number
  readonly dev: string
  readonly ek: string
  readonly h: string
  readonly prev: readonly string[]
  readonly state: string
  /** Of its JSON; it names the commit. */
  readonly hash: string
  /** SHA-256 of the keyring.json next to it. */
  readonly ringHash: string
  /** As it was signed. */
  readonly signed: { readonly json: Bytes; readonly signature: Bytes; readonly hash: string }
  /** The pairs that its device had seen, by id; those without a key in the ring are left out. */
  readonly seen: ReadonlyMap<string, Seen>
  /** The counters of all ids. */
  readonly numbers: ReadonlyMap<string, number>
  /** The ids without a key. */
  readonly keyless: readonly string[]
}

/** Check the form of a commit's JSON. */
function parseCommit(json: Bytes, tag: Bytes): Record<string, unknown> & { ctx: Record<string, [number, string, string]> } {
  const it = fields(parseCanonical(json), ['c', 'ctx', 'dev', 'ek', 'h', 'prev', 'ring', 'state', 'v', 'vault'])
  need(it.v === 1 && it.vault === hex(tag), 'format', 'of another vault')
  need(Number.isSafeInteger(it.c) && (it.c as number) >= 1 && isHex(it.dev, 8) && isHex(it.h, 8), 'format', 'not a commit')
  need((it.ek === '' || isHex(it.ek, 8)) && isHex(it.ring, 32) && isHex(it.state, 32), 'format', 'not a commit')
  need(sortedTexts(it.prev).every(one => isHex(one, 32)), 'format', 'not a list of commits')
  for (const [dev, pair] of Object.entries(anyFields(it.ctx))) {
    need(isHex(dev, 8) && Array.isArray(pair) && pair.length === 3, 'format', 'not a pair')
    const [n, r, s] = pair as unknown[]
    need(Number.isSafeInteger(n) && (n as number) >= 1 && isHex(r, 8), 'format', 'not a pair')
    fromBase64url(s, 64)
  }
  return it as unknown as Record<string, unknown> & { ctx: Record<string, [number, string, string]> }
}

/** Tell whether one of these keys signed. */
async function signedBy(keys: readonly string[], message: Bytes, signature: string): Promise<boolean> {
  const signed = fromBase64url(signature, 64)
  return (await checkAll(keys.map(key => ({ key, message, signature: signed })))).includes(true)
}

/** Return JSON and signature of a head's file. */
function opened(head: Bytes, ring: Ring): { json: Bytes; signature: Bytes } {
  if (ring.plain) {
    const file = fields(parseCanonical(head), ['k', 's'])
    return { json: fromBase64url(file.k), signature: fromBase64url(file.s, 64) }
  }
  const found = openWithAny(ring.readable, ObjectType.commit, '', head)
  need(found !== null, 'open', 'no key opens this commit')
  const [payload, key] = found
  const json = payload.slice(64)
  const said = unlessRefused(() => parseCanonical(json))
  need(isObject(said) && said.ek === key.id, 'format', 'it names another key than the one it is under')
  return { json, signature: payload.slice(0, 64) }
}

/** Return the commit of a head, verified with a ring that has its device. `head`: of head.ipm, or of commit.json in a plain vault. */
export async function readCommit(head: Bytes, ring: Ring, keyring: Bytes): Promise<Commit> {
  need(head.length <= MOST_COMMIT, 'limit', 'a commit of more than 384 KiB')
  const { json, signature } = opened(head, ring)
  const it = parseCommit(json, ring.tag)
  need(ring.plain === (it.ek === ''), 'format', 'the commit of a vault of the other kind')
  need(it.ring === hex(sha256(keyring)), 'format', 'it names another ring')
  const dev = it.dev as string
  const member = ring.said.members.get(dev)
  need(member !== undefined && member.role !== 'reader', 'member', `${dev} is not a member with write access`)
  need(await signedBy([member.sign], join('ipfsmem/v1/commit', [0], json), base64url(signature)), 'signature', 'not signed by its device')
  const keyless: string[] = []
  const seen = new Map<string, Seen>()
  await Promise.all(
    Object.entries(it.ctx).map(async ([id, [n, r, s]]) => {
      const keys = ring.said.keysOf.get(id)
      if (keys === undefined) {
        keyless.push(id)
        return
      }
      seen.set(id, { n, r, s })
      need(await signedBy(keys, seenMessage(id, n, r, ring.tag), s), 'signature', `a counter of ${id} that it did not sign`)
    })
  )
  return {
    c: it.c as number,
    dev,
    ek: it.ek as string,
    h: it.h as string,
    prev: it.prev as string[],
    state: it.state as string,
    hash: hex(sha256(json)),
    ringHash: it.ring as string,
    signed: { json, signature, hash: hex(sha256(json)) },
    seen,
    numbers: new Map(Object.entries(it.ctx).map(([id, [n]]) => [id, n])),
    keyless
  }
}

/** Inputs for checking a state. `held`: values that were checked before; `meanwhile` is called while other threads check signatures. */
export type Checking = { readonly held?: State | null; readonly checkAll?: CheckAll | undefined; readonly meanwhile?: (entries: State['entries']) => Promise<void> }

/**
 * Return the state of a verified commit: covered by its counters, each dot in one entry, every value signed. Ids without a key are left
 * out.
 */
export async function checkedState(entries: ReadonlyMap<string, unknown>, commit: Commit, ring: Ring, { held = null, checkAll: check = checkAll, meanwhile }: Checking = {}): Promise<State> {
  const places = new Set<string>()
  const out = new Map<string, Entry>()
  /** A device that was enrolled twice has two keys, and one of them signed. */
  const signed: (Signed & { readonly dot: string })[] = []
  for (const [name, raw] of entries) {
    // Values held already were checked on arrival; an identical entry is skipped.
    const mine = held?.entries.get(name)
    if (mine !== undefined && (mine === raw || canonical(mine) === canonical(raw))) {
      out.set(name, mine)
      continue
    }
    const entry = checkEntry(name, raw)
    const kept: Record<string, Entry[string]> = {}
    for (const [text, value] of Object.entries(entry)) {
      const dot = readDot(text)
      const keys = ring.said.keysOf.get(dot.dev)
      // Values of ids without a key are left out, whatever they are.
      if (keys === undefined && commit.numbers.has(dot.dev)) continue
      need(!places.has(text), 'format', `${text} in two entries`)
      places.add(text)
      need(keys !== undefined && dot.n <= (commit.numbers.get(dot.dev) ?? 0), 'format', `${text} is not covered by what its commit has seen`)
      kept[text] = value
      const known = mine?.[text]
      if (known !== undefined && (known === value || canonical(known) === canonical(value))) continue
      const one = { message: valueMessage(name, text, value, ring.tag), signature: fromBase64url(value.s, 64), dot: text }
      for (const key of keys) signed.push({ key, ...one })
    }
    const count = Object.keys(kept).length
    if (count > 0) out.set(name, count === Object.keys(entry).length ? entry : kept)
  }
  const verdicts = check(signed)
  await meanwhile?.(out)
  const good = await verdicts
  const unsigned = new Set(signed.map(one => one.dot))
  signed.forEach(({ dot }, i) => good[i] && unsigned.delete(dot))
  for (const dot of unsigned) refuse('signature', `${dot} was not signed by its device`)
  return { entries: out, seen: commit.seen }
}
