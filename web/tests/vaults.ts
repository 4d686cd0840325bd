/** Rings, states, views and whole vaults (FORMAT.md 4 to 7). */

import { Blocks } from '../src/core/blocks.ts'
import { type Bytes, canonical, fromBase64url, fromHex, fromUtf8, hex, parseCanonical, Refused, sha256, utf8 } from '../src/core/bytes.ts'
import { readCar, writeCar } from '../src/core/car.ts'
import { cardOf, parseCard, readOrder, redirects, writeTarget } from '../src/core/cards.ts'
import { readCommit } from '../src/core/commit.ts'
import { type BoxKey, boxKeyOf, idOf, sign, signerOf, signingPublic, verify } from '../src/core/curves.ts'
import { type IpnsRecord, makeRecord, newestRecord, readRecord, targetOf } from '../src/core/ipns.ts'
import { fitting, joinStates, type Judgement } from '../src/core/join.ts'
import { isLaidOutByRule } from '../src/core/layout.ts'
import { openKeyring, parseKeyring, Ring } from '../src/core/ring.ts'
import { checkEntry, readName, seenMessage, type State, valueMessage } from '../src/core/state.ts'
import { readRequest } from '../src/core/enrolling.ts'
import { checkSigned, formed } from '../src/core/statements.ts'
import { authorOf, nextBases, ofWhenReplacing } from '../src/core/successors.ts'
import { lineOf } from '../src/core/timeline.ts'
import { buildTree, nodePath, readTree } from '../src/core/tree.ts'
import { keyringFolder } from '../src/core/unixfs.ts'
import { VaultReader } from '../src/core/vault.ts'
import { type MemoryView, viewsOf } from '../src/core/views.ts'
import { ownViewOf, type View, viewOf } from '../src/core/view.ts'
import { acceptedSignature, keyRequest, keysOfSecret, keysOfWords, NO_ADDRESS, type RootKeys, signingHash } from '../src/core/wallet.ts'
import { compareOrders } from './orders.ts'
import { Court, type Judge, type Rows } from './judging.ts'

const text = (data: Bytes | null): string | null => (data === null ? null : fromUtf8(data))
const textsOf = (all: Record<string, string>) => (hash: string) => (all[hash] === undefined ? null : utf8(all[hash]))
const sorted = <T>(list: Iterable<T>): T[] => [...list].sort()

/** Of a reading its result, or the kind of its refusal. */
async function verdict<T>(read: () => T | Promise<T>): Promise<T | Refused> {
  try {
    return await read()
  } catch (error) {
    if (error instanceof Refused) return error
    throw error
  }
}

async function refuses(court: Court, read: () => unknown, what: string, kind?: string): Promise<void> {
  const got = await verdict(read)
  court.same(got instanceof Refused ? (kind === undefined ? 'refused' : got.kind) : 'taken', kind ?? 'refused', what)
}

export const cars: Judge = (all, court) => {
  for (const row of all.valid) {
    const car = readCar(fromHex(row.car))
    court.same([car.roots, car.blocks.map(([cid, data]) => [cid, hex(data)])], [row.roots, row.blocks], row.about)
  }
  court.same(hex(writeCar(readCar(fromHex(all.valid[0].car)))), all.valid[0].car, 'written')
  for (const row of all.refused) court.refuses(() => readCar(fromHex(row.car)), row.about)
}

export const ipns: Judge = async (all, court) => {
  for (const row of all.make) {
    const said = { value: row.value, sequence: BigInt(row.sequence), validUntil: row.valid_until, ttlNs: BigInt(row.ttl_ns) }
    court.same(hex(await makeRecord(signerOf(fromHex(row.seed)), said)), row.record, row.why)
  }
  for (const row of [...all.make, ...all.accept]) {
    const read = await readRecord(row.name, fromHex(row.record))
    court.same(read.value, row.value, row.why)
    if (row.valid_until_ns) court.same(read.validUntil, BigInt(row.valid_until_ns), row.why)
  }
  const nanoseconds = (now: string) => BigInt(Date.parse(now)) * 1_000_000n
  for (const row of all.refuse) {
    // Whether a record ran out is for whoever asks the name to say, and a value of another form leads nowhere.
    const read = await verdict(() => readRecord(row.name, fromHex(row.record)))
    const counts = !(read instanceof Refused) && read.validUntil > nanoseconds(row.now) && (await verdict(() => targetOf(read)))
    court.same(counts instanceof Refused || !counts, true, row.why)
  }
  for (const row of all.select) {
    const read: IpnsRecord[] = []
    for (const one of row.records) {
      for (const made of all.make) {
        const record = await verdict(() => readRecord(made.name, fromHex(one)))
        if (!(record instanceof Refused)) {
          read.push(record)
          break
        }
      }
    }
    if (read.length === row.records.length) court.same(hex(newestRecord(read).bytes), row.records[row.best], row.why)
  }
}

export const anchorPins: Judge = (all, court) => {
  for (const row of all.roots.filter((one: Rows) => one.ring_root)) court.same(keyringFolder(utf8(all.keyrings[row.keyring])).cid, row.ring_root, row.name)
}

export const scopes: Judge = (all, court) => {
  for (const row of all.names) {
    const { scope, type, ctx } = readName(row.name)
    court.same([scope, type, ctx], [row.scope, row.type, row.ctx], row.name)
  }
  for (const name of all.refused_names) court.refuses(() => readName(name), name)
  for (const row of all.cards) court.same(canonical(parseCard(utf8(row.json))), row.json, 'card')
  for (const row of all.refused_cards) court.refuses(() => parseCard(utf8(row.json)), row.why)
  for (const row of all.merges.cases) {
    const { card, forgotten } = cardOf(row.entry, textsOf(all.merges.texts))
    court.same([card && canonical(card), forgotten], [row.card, row.forgotten], row.why)
  }
  for (const row of all.into) {
    const onward = redirects(new Map(Object.entries(row.into as Record<string, string | null>).map(([scope, into]) => [scope, { into }])))
    court.same(Object.fromEntries(onward), row.followed, row.why)
    for (const [scope, target] of Object.entries(row.target)) court.same(writeTarget(scope, onward), target, row.why)
    for (const [scope, stack] of Object.entries(row.stack)) court.same(readOrder(scope, onward), stack, row.why)
  }
}

export const values: Judge = async (all, court) => {
  compareOrders(court)
  const isValid = (row: Rows) =>
    verify(fromHex(all.public), valueMessage(row.entry, row.dot, row.value, fromHex(all.vault)), fromBase64url(row.value.s))
  court.same(idOf(signingPublic(fromHex(all.seed))), all.device, 'device')
  for (const row of all.signed) {
    checkEntry(row.entry, { [row.dot]: row.value })
    const message = valueMessage(row.entry, row.dot, row.value, fromHex(all.vault))
    court.same([await isValid(row), hex(message)], [true, row.message], row.entry)
    court.same(sign(fromHex(all.seed), message), fromBase64url(row.value.s), row.entry)
  }
  for (const row of all.not_valid) court.same(await isValid(row), false, row.why)
  for (const row of all.refused) court.refuses(() => checkEntry(row.entry, { [row.dot]: row.value }), row.why)
  court.refuses(() => checkEntry('m/k', all.five_dots_of_one_device), 'five dots')
  for (const json of all.malformed_entries) court.refuses(() => checkEntry('m/k', parseCanonical(json.json ?? json)), 'malformed')
  const { n, r, s, message } = all.seen
  court.same(hex(seenMessage(all.device, n, r, fromHex(all.vault))), message, 'seen')
  court.same(await verify(fromHex(all.public), fromHex(message), fromBase64url(s)), true, 'seen')
}

export const tree: Judge = (all, court) => {
  const built = new Map<string, Map<string, string>>()
  for (const row of all.trees) {
    const made = buildTree(row.names.map((name: string) => [name, all.entries[row.entry]]))
    built.set(row.name, made.nodes)
    court.same(made.digest, row.digest, row.name)
    const files = [...made.nodes].map(([prefix, node]) => [`${nodePath(prefix)}.ipm`, hex(sha256(node))])
    court.same(Object.fromEntries(files), row.files, row.name)
    court.same(readTree(made.digest, prefix => utf8(made.nodes.get(prefix) as string)).size, row.names.length, row.name)
  }
  const others = built.get('65 entries are not')
  for (const row of all.refused) {
    const node = (prefix: string) => row.nodes[prefix] ?? (row.without?.includes(prefix) ? undefined : others?.get(prefix))
    court.refuses(() => readTree(row.digest, prefix => (node(prefix) === undefined ? null : utf8(node(prefix)))), row.name)
  }
}

const ANY: Judgement = { passes: () => true, order: loc => loc, admissionOf: () => [0, ''] }

export const state: Judge = (all, court) => {
  const read = (one: Rows): State => ({
    entries: new Map(Object.entries(one.entries)),
    seen: new Map(Object.entries(one.ctx as Record<string, number>).map(([dev, n]) => [dev, { n, r: '' }]))
  })
  const shown = (one: State) => ({ ctx: Object.fromEntries([...one.seen].map(([dev, pair]) => [dev, pair.n])), entries: Object.fromEntries(one.entries) })
  for (const row of all.joins) {
    court.same(shown(joinStates(read(row.mine), read(row.theirs), ANY)), row.joined, 'join')
    court.same(shown(joinStates(read(row.theirs), read(row.mine), ANY)), row.joined, 'join the other way')
    court.same(shown(joinStates(read(row.joined), read(row.mine), ANY)), row.joined, 'join again')
  }
  for (const row of all.room) court.same(sorted(Object.keys(fitting(row.entry, id => row.let_in[id], row.most))), row.kept, row.why)
  for (const row of all.next_bases) {
    const { b, base } = nextBases(row.replaced_in_view_order, hash => row.published.includes(hash))
    court.same([b, base], [row.b, row.base], row.why)
  }
  for (const row of all.clashes) court.refuses(() => joinStates(read(row.mine), read(row.theirs), ANY), row.why, 'held')
}

const said = (one: View) => [text(one.shown), one.dots, one.merged, one.forgotten, one.conflicts]
const wanted = (row: Rows) => [row.shown, row.dots, row.merged, row.forgotten, row.conflicts]

export const view: Judge = (all, court) => {
  for (const row of all.views) {
    const at = (hash: string) => (row.at_hand.includes(hash) ? textsOf(all.texts)(hash) : null)
    const got = viewOf('tone', row.entry, at, value => at(value.base?.[1] ?? ''))
    court.same([...said(got), got.hidden, got.notFetched], [...wanted(row), row.hidden, row.not_fetched], row.why)
  }
  const isMine = (id: string) => all.persons[id] === all.reader
  for (const row of all.own_views) {
    const at = textsOf(all.texts)
    const got = ownViewOf('tone', row.entry, (dot, value) => isMine(dot.slice(0, 16)) && (value.of === undefined || isMine(value.of)), at, value => at(value.base?.[1] ?? ''))
    court.same([...said(got), got.others, got.unheeded], [...wanted(row), row.others, row.unheeded], row.why)
  }
  for (const row of all.words) court.same(ofWhenReplacing(row.entry, row.replaces, row.body, isMine) ?? '', row.of, row.why)
  for (const row of all.carried) court.same(authorOf(row.dot, row.of === '' ? {} : { of: row.of }, isMine), row.result, `${row.dot} of ${row.of}`)
}

export const ring: Judge = async (all, court) => {
  const secrets = new Map<string, BoxKey>(all.parties.map((one: Rows) => [one.name, boxKeyOf(fromHex(one.box_secret))]))
  const secret = (name: string): BoxKey => secrets.get(name) as BoxKey
  const rings = new Map<string, Ring>()
  for (const row of all.rings) {
    const file = await parseKeyring(utf8(row.keyring))
    if (file.plain) rings.set(row.name, await openKeyring(file, []))
    for (const name of row.opened_by) rings.set(row.name, await openKeyring(file, [secret(name)]))
    for (const name of row.not_opened_by) court.same((await openKeyring(file, [secret(name)])).shut, true, `${row.name}, by ${name}`)
    const opened = rings.get(row.name) as Ring
    evaluation(court, opened, row.view, row.name)
    court.same(opened.room(), row.room, `${row.name}: room`)
    if (opened.plain || opened.sealing !== null) court.same(fromUtf8(opened.file()), row.keyring, `${row.name}: the file`)
    const again = Ring.ofKept(JSON.parse(JSON.stringify(opened.kept())))
    court.same([again.mark, again.plain, again.shut], [opened.mark, opened.plain, opened.shut], `${row.name}: kept`)
  }
  const hashes = (one: Ring | undefined) => one?.statements.map(statement => statement.hash)
  for (const row of all.joins) {
    const [a, b] = [rings.get(row.a) as Ring, rings.get(row.b) as Ring]
    court.same(hashes(a.join(b)), hashes(rings.get(row.result)), row.result)
  }
  for (const row of all.refused_joins) {
    const open = async (text: string) => openKeyring(await parseKeyring(utf8(text)), [secret(row.by)])
    const [a, b] = [await open(row.a), await open(row.b)]
    await refuses(court, async () => a.joinedWith(b), row.name, 'limit')
    await refuses(court, async () => b.with(a.statements), `${row.name}, the open part`, 'limit')
  }
  for (const row of all.evaluations) {
    const statements = row.statements.map((hash: string) => formed(all.statements[hash]))
    await checkSigned(statements, fromHex(all.vault))
    evaluation(court, new Ring(fromHex(all.vault), false, statements, []), row.view, row.name)
  }
  for (const row of all.refused_keyrings) {
    const opened = await verdict(async () => openKeyring(await parseKeyring(utf8(row.keyring)), [secret('laptop')]))
    court.same(opened instanceof Refused || opened.shut, true, row.name)
  }
  court.same((await readRequest(utf8(all.request.text), fromHex(all.vault))).label.length > 0, true, 'request')
}

function evaluation(court: Court, one: Ring, wantedView: Rows, name: string): void {
  const it = one.said
  const ids = (test: (id: string) => boolean) => sorted([...it.families.keys()].filter(test))
  const byId: Record<string, string[]> = {}
  for (const [admin, id] of it.revokedBy) byId[id] = sorted(new Set([...(byId[id] ?? []), admin]))
  const got: Record<string, unknown> = {
    anchors: sorted(it.anchors()),
    asked: sorted(it.asked),
    ek_names: sorted(it.names),
    families: Object.fromEntries(it.families),
    given_up: ids(id => it.givenUp.has(id)),
    kept_statement_hashes: one.statements.map(statement => statement.hash),
    next_epoch: it.nextEpoch,
    persons: Object.fromEntries(it.persons),
    put_out_by: byId,
    ranks: Object.fromEntries(Object.keys(wantedView.ranks).map(id => [id, it.admissionOf(id)[0]])),
    revoked: ids(id => it.revoked.has(it.families.get(id) as string)),
    roots: sorted(it.roots),
    seals: it.seals,
    sign_keys: Object.fromEntries(it.keysOf)
  }
  for (const [field, value] of Object.entries(got)) {
    const isList = field === 'anchors' || field === 'roots'
    court.same(value, isList ? sorted(wantedView[field]) : wantedView[field], `${name}: ${field}`)
  }
  const members = [...it.members.values()].map(({ anchor, box, family, id, kind, label, role, sign: key }) => [id, { anchor, box, family, kind, label, role, sign: key }])
  const theirs = Object.entries(wantedView.members).map(([id, { rank, ...rest }]: Rows) => [id, rest])
  court.same(Object.fromEntries(members), Object.fromEntries(theirs), `${name}: members`)
}

export const commits: Judge = async (all, court) => {
  for (const kind of ['sealed', 'plain']) {
    const keyring = utf8(all[kind].keyring)
    const opened = await openKeyring(await parseKeyring(keyring), [boxKeyOf(fromHex(all.box_secret))])
    const read = (row: Rows) => readCommit(row.zeros === undefined ? fromBase64url(row.head) : new Uint8Array(row.zeros), opened, keyring)
    for (const row of all[kind].valid) {
      const commit = await read(row)
      court.same([commit.hash, sorted(commit.keyless)], [row.digest, row.lacking], row.name)
    }
    for (const row of all[kind].refused) await refuses(court, () => read(row), row.name, row.why)
  }
}

export const vaults: Judge = async (all, court) => {
  for (const row of all.cases) court.same(await readVault(all, row), row.expect, row.name)
}

/** The same of vaults of liars; where the files of a root stand is not asked there. */
export const forgedVaults: Judge = async (all, court) => {
  for (const row of all.cases) {
    const { by_rule: _, ...seen } = (await readVault(all, row)) as Rows
    court.same(seen, row.expect, row.name)
  }
}

async function keysOf({ wallet, words, secret }: Rows): Promise<RootKeys> {
  if (words !== undefined) return keysOfWords(words)
  if (wallet === undefined) return keysOfSecret({ secret: fromHex(secret, 64), address: NO_ADDRESS, vault: 'default', keyNumber: 1 })
  const { address, rs } = await walletSignature(wallet)
  return keysOfSecret({ secret: rs, address, vault: wallet.vault, keyNumber: wallet.key_number })
}

/** What a wallet with this key answers. */
async function walletSignature(wallet: Rows): Promise<{ address: string; rs: Bytes }> {
  const { secp256k1 } = await import('@noble/curves/secp256k1.js')
  const { keccak_256: keccak } = await import('@noble/hashes/sha3.js')
  const key = fromHex(wallet.private_key)
  const address = hex(keccak(secp256k1.getPublicKey(key, false).subarray(1)).subarray(12))
  const request = keyRequest(address, wallet.vault, wallet.key_number)
  const [parity, ...rs] = secp256k1.sign(signingHash(request), key, { prehash: false, format: 'recovered' })
  return { address, rs: acceptedSignature(address, request, Uint8Array.from([...rs, 27 + (parity as number)])) }
}

/** The words of the vectors for why nothing is read, where they are others. */
const REFUSED: Partial<Record<string, string>> = { missing: 'unread', member: 'revoked' }

/** What a new device sees of one case of whole vaults. */
export async function readVault(all: Rows, row: Rows): Promise<unknown> {
  const blocks = new Blocks()
  for (const [cid, data] of readCar(fromBase64url(all.cars[row.car])).blocks) blocks.add(cid, data)
  for (const cid of row.without) blocks.remove(cid)
  for (const [cid, data] of Object.entries(row.instead)) blocks.add(cid, fromBase64url(data))
  const names = new Map(Object.entries(row.names).map(([name, record]) => [name, fromBase64url(record)]))
  const isPlain = row.kind === 'plain'
  const keys = await keysOf(row.opened_by)
  const reader = new VaultReader({ boxes: [boxKeyOf(keys.boxSecret)], plain: isPlain, blocks, names, pins: row.pins, now: row.now })
  const read = await verdict(() => reader.read(keys))
  if (read instanceof Refused) return { refused: REFUSED[read.kind] ?? read.kind }
  const { persons } = read.ring.said
  const me = persons.get(idOf(keys.admin))
  const shown = viewsOf(read.state, id => persons.get(id) === me, (name, loc) => reader.object(read.ring, name, loc))
  const members = [...read.ring.said.members.values()].map(({ id, label, role }) => [id, { label, person: read.ring.said.persons.get(id) ?? null, role }])
  return {
    by_rule: read.root === null ? null : isLaidOutByRule(blocks, read.root, read.state, isPlain),
    digest: read.digest,
    events: Object.fromEntries([...shown.events].filter(([, events]) => events.length > 0).map(([scope, events]) => [scope, events.map(lineOf)])),
    // All providers answered, so what is not here is nowhere.
    heads: Object.fromEntries(Object.entries(read.verdicts).map(([root, one]) => [root, one === 'unread' ? 'refused: head' : one])),
    members: Object.fromEntries(members),
    memories: Object.fromEntries([...shown.memories].map(([place, memory]) => [place, shownMemory(memory)])),
    root: read.root,
    scopes: Object.fromEntries([...shown.cards].map(([scope, { card }]) => [scope, card])),
    vault: hex(read.ring.tag)
  }
}

function shownMemory({ all, own, text: fetch }: MemoryView): unknown {
  const copy = (one: { file: string | null; body: string }) => ({ file: one.file, text: text(fetch(one.body)) })
  const shownView = (one: View) => ({
    shown: text(one.shown),
    merged: one.merged,
    forgotten: one.forgotten,
    conflicts: one.conflicts.map(copy),
    hidden: one.hidden.map(one => text(fetch(one.body))),
    not_fetched: one.notFetched
  })
  const mine = { ...shownView(own), others: own.others.map(copy), unheeded: own.unheeded.length }
  return { ...shownView(all), own: mine.others.length > 0 || mine.unheeded > 0 ? mine : null }
}
