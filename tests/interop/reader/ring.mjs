// The key ring (FORMAT.md 4): keyring.json read, opened, joined, and what it says. It makes no statement.

import {
  byCodePoints,
  canonical,
  compare,
  fields,
  fromB64,
  fromHex,

  greatest,
  hex,
  isHex,
  join,

  need,
  parseCanonical,
  same,
  sha256,
  sortedTexts,
  unlessRefused
} from './bytes.mjs'
import { idOf, isBoxKey, isSigningKey, openBox, vaultTag, verify } from './keys.mjs'
import { EpochKey, RING_BODY } from './sealed.mjs'

const MOST_RING = 1 << 20
const MOST_KEEP = 256
const MOST_HEIRS = 8
const REACH = 65536
const ROLES = ['reader', 'writer', 'admin']

const isId = text => isHex(text, 8)
const isClock = text => isHex(text, 8)

function signKey(text) {
  need(isHex(text, 32) && isSigningKey(Buffer.from(text, 'hex')), 'format', 'not a signing key')
}

// Control characters, line breaks, and what 1.3 leaves out of index lines.
const UNSEEN =
  /[\p{Cc}\u2028\u2029\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{e0fff}]/u

export function label(text) {
  need(typeof text === 'string' && text.isWellFormed(), 'format', 'a label that is no text')
  const size = Buffer.byteLength(text)
  need(size >= 1 && size <= 128 && !UNSEEN.test(text), 'format', 'a label of another length, or with characters that nobody sees')
}

/** What a member statement or a request says that its key agreed to. */
function possession(it, tag, anchor, heirOf) {
  const said = canonical({ anchor, box: it.box, heir_of: heirOf, sign: it.sign })
  const message = join('ipfsmem/v1/possession', [0], tag, said)
  need(verify(fromHex(it.sign, 32), message, fromB64(it.own, 64)), 'signature', 'a key that did not agree')
}

const FORMS = {
  genesis(it) {
    fields(it, ['roots', 't', 'v'])
    need(Array.isArray(it.roots) && [1, 2].includes(it.roots.length) && new Set(it.roots).size === it.roots.length, 'format')
    it.roots.forEach(signKey)
    return it.roots[0]
  },
  member(it) {
    const names = 'anchor box by heir_of id kind label own person role sign since t under v was'
    fields(it, names.split(' '))
    for (const key of [it.by, it.sign]) signKey(key)
    need(isHex(it.box, 32) && isBoxKey(Buffer.from(it.box, 'hex')), 'format', 'not a box key')
    need(it.anchor === null || isHex(it.anchor, 32), 'format')
    if (it.anchor !== null) signKey(it.anchor)
    need(it.id === idOf(Buffer.from(it.sign, 'hex')), 'format', 'an id of another key')
    need(['device', 'agent', 'wallet', 'words'].includes(it.kind) && ROLES.includes(it.role), 'format')
    need(isHex(it.person, 8) && isClock(it.since), 'format')
    label(it.label)
    if (it.heir_of === null) need(it.under === null && it.was === null, 'format')
    else {
      need(it.heir_of === it.by && isHex(it.under, 32) && isId(it.was) && it.anchor === null, 'format', 'a successor of another form')
      need(['device', 'agent'].includes(it.kind) && it.role !== 'admin' && it.sign !== it.by, 'format', 'a successor of another form')
    }
    return it.by
  },
  epoch(it) {
    fields(it, ['by', 'ek', 'epoch', 'for', 'not', 'of', 'old', 'slots', 't', 'v', 'while'])
    signKey(it.by)
    need(isId(it.ek) && Number.isSafeInteger(it.epoch) && it.epoch >= 1 && it.epoch < 2 ** 32, 'format')
    for (const list of [it.for, it.not, it.of, it.old]) need(sortedTexts(list).every(isId), 'format', 'not an id')
    for (const [admin, ids] of Object.entries(fields(it.while, Object.keys(it.while ?? {})))) {
      need(isId(admin) && sortedTexts(ids).every(isId) && ids.length > 0, 'format', 'not an id')
    }
    for (const slot of sortedTexts(it.slots)) fromB64(slot, 104)
    return it.by
  },
  revoke(it) {
    fields(it, ['anchor', 'at', 'by', 'heirs', 'keep', 'n', 'person', 'rank', 'sign', 't', 'v'])
    need(it.rank === 0 || it.rank === 1, 'format', 'an unknown rank')
    for (const key of [it.by, it.sign]) signKey(key)
    sortedTexts(it.heirs).forEach(signKey)
    need(it.anchor === null || isHex(it.anchor, 32), 'format')
    if (it.anchor !== null) signKey(it.anchor)
    need(sortedTexts(it.keep, MOST_KEEP).every(one => isHex(one, 32)), 'format')
    need(isClock(it.at) && isHex(it.person, 8), 'format')
    for (const [id, n] of Object.entries(fields(it.n, Object.keys(it.n ?? {})))) {
      need(isId(id) && Number.isSafeInteger(n) && n >= 1, 'format', 'no counter')
    }
    return it.by
  }
}

/** One {k, s}: payload with its fields, hash and signature, which is not looked at here. */
function formed(envelope) {
  fields(envelope, ['k', 's'])
  const payload = fromB64(envelope.k)
  const it = parseCanonical(payload)
  need(it !== null && typeof it === 'object' && Object.hasOwn(FORMS, it.t) && it.v === 1, 'format', 'an unknown statement')
  const by = FORMS[it.t](it)
  fromB64(envelope.s, 64)
  return { ...it, by, byId: idOf(Buffer.from(by, 'hex')), hash: hex(sha256(payload)), payload, s: envelope.s }
}

/** The same statement, said for this vault by who says so, and agreed to by the key that it enrols. */
function signed(one, tag) {
  const message = join('ipfsmem/v1/statement', [0], tag, one.payload)
  need(verify(fromHex(one.by, 32), message, fromB64(one.s, 64)), 'signature', 'a wrong signature')
  if (one.t === 'member') possession(one, tag, one.anchor, one.heir_of)
  return one
}

export const statement = (envelope, tag) => signed(formed(envelope), tag)

/** A list of statements as it stands in a file: sorted by hash, each once, all of the kinds that belong there. */
function statements(list, isOpen) {
  need(Array.isArray(list), 'format', 'no list of statements')
  const all = list.map(formed)
  all.forEach((one, i) => {
    need(i === 0 || all[i - 1].hash < one.hash, 'format', 'statements out of order')
    const open = one.t === 'genesis' || one.t === 'epoch' || (one.t === 'member' && one.role === 'admin')
    need(open === isOpen, 'format', 'a statement in the wrong part')
  })
  return all
}

/** The file: vault tag, whether it is a plain vault, open statements, and the body, still closed when it is sealed. */
export function parseKeyring(data) {
  need(data.length <= MOST_RING, 'limit', 'a ring of more than 1 MiB')
  const file = fields(parseCanonical(data), ['body', 'open', 'v', 'vault'])
  need(file.v === 1, 'format', 'another version')
  const tag = fromHex(file.vault, 16)
  const open = statements(file.open, true)
  const births = open.filter(one => one.t === 'genesis')
  need(births.length > 0 && new Set(births.map(one => one.by)).size === 1, 'format', 'no genesis, or of two vaults')
  const first = fromHex(births[0].by, 32)
  const plain = same(tag, vaultTag(first, true))
  need(plain || same(tag, vaultTag(first, false)), 'format', 'a tag that is not of the first root')
  open.forEach(one => signed(one, tag))
  need(plain === (typeof file.body !== 'string'), 'format', 'a body of the other form than the tag says')
  if (plain) {
    need(open.every(one => one.t !== 'epoch'), 'format', 'epochs in a plain vault')
    fields(file.body, ['eks', 'st'])
    need(Array.isArray(file.body.eks) && file.body.eks.length === 0, 'format', 'epoch keys in a plain vault')
    return { tag, plain, open, inner: statements(file.body.st, false).map(one => signed(one, tag)) }
  }
  return { tag, plain, open, body: fromB64(file.body) }
}

/** The keys that slots of these epochs give to whoever has this box secret. */
function fromSlots(epochs, tag, boxSecret) {
  const found = []
  for (const epoch of epochs) {
    for (const slot of epoch.slots) {
      const text = openBox(fromB64(slot, 104), boxSecret)
      if (text === null || text.length !== 56 || text.subarray(0, 4).toString('latin1') !== 'IPMK') continue
      if (!same(text.subarray(4, 20), tag) || text.readUInt32BE(20) !== epoch.epoch) continue
      const key = new EpochKey(epoch.epoch, text.subarray(24), tag)
      if (key.id === epoch.ek) found.push(key)
    }
  }
  return found
}

const newestFirst = keys => [...keys].sort((a, b) => -compare([a.epoch, a.id], [b.epoch, b.id]))

/** A ring that was read, with all keys that open: those of its slots, of its body, and `known` ones. Its body counts when one of them opens it. */
export function openKeyring(file, boxSecret, known = []) {
  if (file.plain) return new Ring(file.tag, true, [...file.open, ...file.inner], [])
  const given = fromSlots(
    file.open.filter(one => one.t === 'epoch'),
    file.tag,
    boxSecret
  )
  for (const key of newestFirst([...given, ...known])) {
    const raw = unlessRefused(() => key.open(RING_BODY, '', file.body))
    if (raw === null) continue
    const body = fields(parseCanonical(raw), ['eks', 'st'])
    need(Array.isArray(body.eks), 'format', 'no list of keys')
    const others = body.eks.map(pair => {
      need(Array.isArray(pair) && pair.length === 2, 'format', 'no epoch key')
      need(Number.isSafeInteger(pair[0]) && pair[0] >= 1 && pair[0] < 2 ** 32, 'format', 'no number of an epoch')
      return new EpochKey(pair[0], fromB64(pair[1], 32), file.tag)
    })
    const order = one => [one.epoch, one.id, hex(one.key)]
    others.forEach((one, i) => need(i === 0 || compare(order(others[i - 1]), order(one)) < 0, 'format', 'keys out of order'))
    const inner = statements(body.st, false).map(one => signed(one, file.tag))
    return new Ring(file.tag, false, [...file.open, ...inner], [...others, key, ...given])
  }
  return new Ring(file.tag, false, file.open, given, true)
}

/** A set of statements of one vault with its epoch keys, and what they say. */
export class Ring {
  constructor(tag, plain, all, keys, shut = false) {
    Object.assign(this, { tag, plain, shut })
    const union = new Map()
    for (const one of all) {
      const here = union.get(one.hash)
      if (here === undefined || byCodePoints(one.s, here.s) < 0) union.set(one.hash, one)
    }
    this.statements = keep([...union.values()])
    this.said = new Said(this.statements)
    const byKey = new Map(keys.map(key => [`${key.id} ${hex(key.key)}`, key]))
    this.readable = newestFirst(byKey.values())
    this.keys = this.readable.filter(key => this.said.names.has(key.id))
  }

  join(other) {
    need(same(this.tag, other.tag) && this.plain === other.plain, 'vault', 'a ring of another vault')
    return new Ring(this.tag, this.plain, [...this.statements, ...other.statements], [...this.readable, ...other.readable])
  }

  get mark() {
    return [...this.statements.map(one => one.hash + one.s).sort(), ...this.readable.map(key => key.id)].join()
  }
}

const of = (all, t) => all.filter(one => one.t === t)
const isEnrolment = one => one.t === 'member' && one.heir_of === null
const isHeir = one => one.t === 'member' && one.heir_of !== null
const targetOf = one => idOf(Buffer.from(one.sign, 'hex'))
/** All whom an epoch calls out, and of those whom only admins put out [admin, id]. */
const goneBy = one => [...one.not, ...Object.values(one.while).flat()]
const pairsOf = one => Object.entries(one.while).flatMap(([admin, ids]) => ids.map(id => [admin, id]))

/** What "drops" says: (a) to (h). */
function keep(all) {
  const roots = new Set(of(all, 'genesis').flatMap(one => one.roots))
  const isRoot = key => roots.has(key)
  const admins = new Set(
    all.filter(one => isEnrolment(one) && isRoot(one.by) && one.role === 'admin' && !isRoot(one.sign)).map(one => one.sign)
  )
  const revokes = new Map()
  for (const one of of(all, 'revoke')) {
    if (!isRoot(one.by) || isRoot(one.sign)) continue
    const id = targetOf(one)
    revokes.set(id, [...(revokes.get(id) ?? []), one])
  }
  /** Whether this key may say something: a root, an admin that no root revoked, or what every revoke of it lists. */
  const maySay = one => {
    if (isRoot(one.by)) return true
    const gone = revokes.get(one.byId)
    return gone ? gone.every(revoke => revoke.keep.includes(one.hash)) : admins.has(one.by)
  }
  /** Whether of this id no statement stands in all revokes of it by roots. */
  const nothingStands = id => {
    const [first, ...more] = revokes.get(id) ?? []
    return first !== undefined && !first.keep.some(hash => more.every(revoke => revoke.keep.includes(hash)))
  }
  const kept = all.filter(one => {
    if (one.t === 'genesis') return true
    if (isHeir(one)) return false
    if (!maySay(one)) return false
    if (one.t === 'member') {
      if (isRoot(one.sign)) return one.by === one.sign
      return (one.role !== 'admin' || isRoot(one.by)) && !revokes.has(one.id)
    }
    if (one.t === 'revoke') return isRoot(one.by) || !isRoot(one.sign)
    return ![...one.for, one.byId].some(id => goneBy(one).includes(id)) && !one.of.some(nothingStands)
  })
  const enrolments = new Map(kept.filter(isEnrolment).map(one => [one.hash, one]))
  const under = new Map()
  for (const one of all.filter(isHeir)) {
    const base = enrolments.get(one.under)
    if (!base || base.sign !== one.by || isRoot(one.by) || isRoot(one.sign)) continue
    under.set(one.under, [...(under.get(one.under) ?? []), one])
  }
  for (const heirs of under.values()) kept.push(...heirs.sort((a, b) => (a.hash < b.hash ? -1 : 1)).slice(0, MOST_HEIRS))

  const has = (list, others) => others.every(one => list.includes(one))
  const outdoes = (a, b) =>
    a !== b &&
    isRoot(a.by) &&
    compare([a.epoch, a.ek], [b.epoch, b.ek]) >= 0 &&
    has(a.not, b.not) &&
    pairsOf(b).every(([admin, id]) => a.not.includes(id) || a.not.includes(admin) || (a.while[admin] ?? []).includes(id)) &&
    has([...b.of, ...(isRoot(b.by) ? [] : [b.byId])], a.of) &&
    has([...a.for, ...goneBy(a)], b.for) &&
    has(a.old, b.old) &&
    (a.ek === b.ek || a.old.includes(b.ek))
  /** Whether a root's revoke lets less stand than another of the same key, and says all else that it says. */
  const repeats = (a, b) =>
    isRoot(a.by) &&
    isRoot(b.by) &&
    a.sign === b.sign &&
    a.keep.length < b.keep.length &&
    has(b.keep, a.keep) &&
    Object.entries(a.n).every(([id, count]) => count <= (b.n[id] ?? 0)) &&
    has(a.heirs, b.heirs) &&
    (b.anchor === null || b.anchor === a.anchor) &&
    a.person === b.person &&
    a.rank <= b.rank
  const epochs = of(kept, 'epoch')
  const said = of(kept, 'revoke')
  const lost = new Set([
    ...epochs.filter(b => epochs.some(a => outdoes(a, b) && !(outdoes(b, a) && b.hash < a.hash))),
    ...said.filter(b => said.some(a => repeats(a, b))),
  ])
  return kept.filter(one => !lost.has(one)).sort((a, b) => (a.hash < b.hash ? -1 : 1))
}

/** What kept statements say: members, who is out, which key seals, whose a member is. */
class Said {
  constructor(kept) {
    const births = of(kept, 'genesis').sort((a, b) => (a.hash < b.hash ? -1 : 1))
    this.first = births[0]?.by
    this.roots = [...new Set(births.flatMap(one => one.roots))]
    const isRoot = key => this.roots.includes(key)
    const rootIds = new Set(this.roots.map(key => idOf(Buffer.from(key, 'hex'))))
    const enrolments = kept.filter(isEnrolment)
    const heirs = kept.filter(isHeir)
    const revokes = of(kept, 'revoke')
    const epochs = of(kept, 'epoch')
    this.names = new Set(epochs.flatMap(one => [one.ek, ...one.old]))
    const made = new Set(enrolments.filter(one => isRoot(one.by) && one.role === 'admin').map(one => one.id))
    const counting = revokes.filter(one => !isRoot(one.sign) && (isRoot(one.by) || !made.has(targetOf(one))))
    this.revoked = new Set(counting.map(targetOf))

    const ids = new Set(enrolments.map(one => one.id))
    this.family = new Map([...ids].map(id => [id, id]))
    const byHash = new Map(enrolments.map(one => [one.hash, one]))

    /** By a root's word for good; else by admins, as long as no root revoked them without letting that stand. */
    const ended = new Set(revokes.filter(one => isRoot(one.by)).map(targetOf))
    const good = [...counting, ...epochs].filter(one => isRoot(one.by)).flatMap(one => (one.t === 'revoke' ? [targetOf(one)] : one.not))
    const lasting = one => pairsOf(one).filter(([admin]) => !ended.has(admin))
    const own = epochs.flatMap(one => (isRoot(one.by) ? lasting(one) : one.not.map(id => [one.byId, id])))
    const passedOn = epochs.filter(one => !isRoot(one.by)).flatMap(one => lasting(one).map(([, id]) => [one.byId, id]))
    const puts = counting.map(one => [one.byId, targetOf(one)])
    for (const more of [own, passedOn]) {
      const known = new Set(puts.map(([, id]) => id))
      puts.push(...more.filter(([, id]) => !known.has(id)))
    }
    this.asked = new Set(good)
    for (const id of rootIds) this.asked.delete(id)
    /** [admin, id] of who is out by admins' words alone. */
    this.putOut = puts.filter(([, id]) => !this.asked.has(id) && !rootIds.has(id) && !made.has(id))
    for (const [, id] of this.putOut) this.asked.add(id)

    this.members = new Map()
    for (const id of ids) {
      if (this.revoked.has(id)) continue
      const best = greatest(
        enrolments.filter(one => one.id === id),
        one => [isRoot(one.by) ? 1 : 0, one.since, one.hash]
      )
      this.members.set(id, { ...best, role: made.has(id) || rootIds.has(id) ? 'admin' : best.role, familyId: id })
    }
    const claims = heirs.sort((a, b) => compare([a.by, a.hash], [b.by, b.hash]))
    for (const one of claims) {
      const base = byHash.get(one.under)
      const head = this.members.get(base.id)
      if (!head || ids.has(one.id) || this.revoked.has(one.id) || this.members.has(one.id) || one.box !== base.box) continue
      const role = ROLES[Math.min(ROLES.indexOf(one.role), ROLES.indexOf(head.role))]
      this.members.set(one.id, { ...one, role, familyId: base.id })
    }
    const within = (id, family) => this.family.has(id) || this.family.set(id, family)
    for (const one of this.members.values()) within(one.id, one.familyId)
    for (const id of this.revoked) within(id, id)
    for (const one of counting.sort((a, b) => compare([targetOf(a)], [targetOf(b)]))) {
      for (const key of isRoot(one.by) ? one.heirs : []) within(idOf(Buffer.from(key, 'hex')), targetOf(one))
    }
    for (const one of claims) within(one.id, one.byId)

    const reach = Math.max(0, ...epochs.filter(one => isRoot(one.by)).map(one => one.epoch)) + REACH
    const near = epochs.filter(one => one.epoch <= reach)
    this.nextEpoch = 1 + Math.max(0, ...near.map(one => one.epoch))
    const may = near.filter(one =>
      epochs
        .filter(other => other.ek === one.ek)
        .every(other => [...rootIds].every(id => other.for.includes(id)) && [...this.asked].every(id => goneBy(other).includes(id)))
    )
    const seals = may.length ? greatest(may, one => [one.epoch, one.ek]) : null
    this.seals = seals && [seals.epoch, seals.ek]

    this.keysOf = new Map()
    const knows = key => {
      const id = idOf(Buffer.from(key, 'hex'))
      this.keysOf.set(id, [...new Set([...(this.keysOf.get(id) ?? []), key])].sort())
    }
    this.roots.forEach(knows)
    for (const one of [...enrolments, ...heirs]) knows(one.sign)
    for (const one of revokes.filter(one => isRoot(one.by))) [one.sign, ...one.heirs].forEach(knows)

    /** How near to a root somebody's family stands: 0 where a root let it in, 1 where an admin did, else 2. */
    const ranks = new Map([...rootIds].map(id => [id, 0]))
    for (const one of [...enrolments, ...revokes]) {
      if (one.t === 'revoke' && !isRoot(one.by)) continue
      const id = one.t === 'revoke' ? targetOf(one) : one.id
      const rank = one.t === 'revoke' ? one.rank : isRoot(one.by) ? 0 : 1
      ranks.set(id, Math.min(rank, ranks.get(id) ?? rank))
    }
    /** The rank, and which admins let it in where no root did. */
    this.letIn = id => {
      const family = this.family.get(id) ?? id
      const rank = ranks.get(family) ?? 2
      const admins = enrolments.filter(one => one.id === family).map(one => idOf(Buffer.from(one.by, 'hex')))
      return [rank, rank === 1 ? [...new Set(admins)].sort().join(' ') : '']
    }
    this.persons = this.owners(enrolments, revokes, isRoot)
    this.givenUp = new Set(
      [...new Set([...this.keysOf.keys(), ...this.family.keys()])].filter(
        id =>
          !this.keysOf.has(id) ||
          this.asked.has(this.family.get(id) ?? id) ||
          heirs.some(one => one.was === id && this.family.get(id) === byHash.get(one.under).id)
      )
    )
  }

  /** Rule 5: id -> person; who is nobody's is not in it. */
  owners(enrolments, revokes, isRoot) {
    const given = new Map()
    for (const one of enrolments.filter(one => isRoot(one.by))) given.set(one.person, (given.get(one.person) ?? new Set()).add(one.id))
    const out = new Map()
    for (const id of new Set(this.family.values())) {
      const all = enrolments.filter(one => one.id === id)
      if (all.length === 0) continue
      const best = greatest(all, one => [isRoot(one.by) ? 1 : 0, one.since, one.hash])
      const holders = given.get(best.person)
      const others = [...(holders ?? [])].filter(one => one !== id)
      const nobody = !isRoot(best.by) && others.length > 0 && !others.includes(best.byId)
      if (!nobody) out.set(id, best.person)
    }
    const byRoots = revokes.filter(one => isRoot(one.by)).sort((a, b) => byCodePoints(b.person, a.person))
    for (const one of byRoots) out.set(targetOf(one), one.person)
    for (const [id, family] of this.family) if (id !== family && out.has(family)) out.set(id, out.get(family))
    return out
  }

  /** Anchor keys of roots and of whom they let in, the first root's first. */
  anchors() {
    const all = [...this.members.values()].filter(one => one.anchor !== null && this.roots.includes(one.by))
    return [...all.filter(one => one.sign === this.first), ...all.filter(one => one.sign !== this.first)].map(one => one.anchor)
  }
}

/** A request for enrolment, of at most 4 KiB. */
export function readRequest(data, tag) {
  need(data.length <= 4096, 'limit')
  const it = fields(parseCanonical(data), ['box', 'kind', 'label', 'own', 'sign', 'v', 'vault'])
  need(it.v === 1 && it.vault === hex(tag), 'vault')
  possession(it, tag, null, null)
  return it
}

