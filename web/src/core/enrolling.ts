/**
 * Making statements: a new vault, an enrolment, keys for members that lack them, and the enrolment request of a device (FORMAT.md 4).
 *
 * Each function returns the ring with more statements; heads are joined before, and the result is published after. Time and randomness are
 * passed in.
 */

import { base64url, byCodePoints, type Bytes, canonical, fields, fromBase64url, fromHex, hex, isHex, join, need, parseCanonical, sha256, utf8 } from './bytes.ts'
import { idOf, isBoxKey, sealBox, type Signer } from './curves.ts'
import { isEnrolment, ofKind, targetOf } from './retention_rules.ts'
import { Ring, slotText } from './ring.ts'
import { EpochKey } from './sealed.ts'
import {
  agreed,
  type EnrolmentRequest,
  formed,
  KINDS,
  type Kind,
  possessionMessage,
  type Role,
  signKey,
  type Statement,
  statementMessage
} from './statements.ts'
import { isLabel } from './unseen.ts'

const MOST_FAMILIES = 64
const MOST_REQUEST = 4096
/** Keys named only by others' epochs that a new epoch names too. */
const MOST_OTHER_KEYS = 16
const LAST_CLOCK = 'f'.repeat(16)

export type Chance = (size: number) => Bytes

/** The public side of an enrolment. */
export type Enrollee = EnrolmentRequest & { readonly anchor: string | null }

/** Return the public side of an enrolment, proved by its own key. */
export async function enrolleeOf(signer: Signer, box: Bytes, label: string, tag: Bytes, kind: Kind = 'device', anchor: Bytes | null = null): Promise<Enrollee> {
  need(isLabel(label), 'format', 'a label has 1 to 128 bytes that people see')
  const said = { box: hex(box), sign: hex(signer.public) }
  const own = await signer.sign(possessionMessage(said, tag, anchor && hex(anchor), null))
  return { ...said, kind, label, own: base64url(own), anchor: anchor && hex(anchor) }
}

/** The field `person` of the first key of a new person. */
export const newPerson = (tag: Bytes, sign: Bytes): string => hex(sha256(join('ipfsmem/v1/person', [0], tag, sign))).slice(0, 16)

async function said(signer: Signer, tag: Bytes, body: Record<string, unknown>): Promise<Statement> {
  const payload = utf8(canonical(body))
  return formed({ k: base64url(payload), s: base64url(await signer.sign(statementMessage(payload, tag))) })
}

const member = (signer: Signer, tag: Bytes, one: Enrollee, role: Role, since: string, person: string): Promise<Statement> =>
  said(signer, tag, {
    anchor: one.anchor,
    box: one.box,
    by: hex(signer.public),
    heir_of: null,
    id: idOf(fromHex(one.sign)),
    kind: one.kind,
    label: one.label,
    own: one.own,
    person,
    role,
    sign: one.sign,
    since,
    t: 'member',
    under: null,
    v: 1,
    was: null
  })

/** A root or device whose keys are available while a ring is made. */
export type Founder = { readonly signer: Signer; readonly box: Bytes; readonly anchor: Bytes; readonly label: string; readonly kind: Kind }

/** Make the ring of a new sealed vault: its roots, this device, and the first epoch key. */
export async function newRing(
  tag: Bytes,
  roots: readonly Founder[],
  device: Enrollee,
  since: string,
  chance: Chance
): Promise<Ring> {
  const [first] = roots
  need(first !== undefined, 'format', 'a vault without a root')
  const person = newPerson(tag, first.signer.public)
  const statements = [await said(first.signer, tag, { roots: roots.map(one => hex(one.signer.public)), t: 'genesis', v: 1 })]
  for (const one of roots) {
    const itself = await enrolleeOf(one.signer, one.box, one.label, tag, one.kind, one.anchor)
    statements.push(await member(one.signer, tag, itself, 'admin', since, person))
  }
  statements.push(await member(first.signer, tag, device, 'writer', since, person))
  return rotate(new Ring(tag, false, statements, []), first.signer, chance)
}

function needAdmin(ring: Ring, signer: Signer): void {
  const me = idOf(signer.public)
  need(!ring.said.asked.has(me), 'member', 'these keys were revoked: they no longer open this vault')
  const known = ring.said.members.get(me)
  need(known?.role === 'admin' && known.sign === hex(signer.public), 'member', 'these keys are not those of an admin of this vault')
}

/** Return `since`, or the least clock after the enrolments of an id that this one must supersede. */
function laterSince(ring: Ring, signer: Signer, id: string, since: string): string {
  const isRoot = (key: string): boolean => ring.said.roots.includes(key)
  const equals = ring.statements.filter(isEnrolment).filter(one => one.id === id && isRoot(one.by) === isRoot(hex(signer.public)))
  const last = equals.reduce((most, one) => (one.since > most ? one.since : most), '')
  if (last < since) return since
  need(last !== LAST_CLOCK, 'limit', `${id} was enrolled with the last time that there is: revoke it, and enrol the device under a new key`)
  return (BigInt(`0x${last}`) + 1n).toString(16).padStart(16, '0')
}

export type Enrolling = { readonly role: Role; readonly since: string; readonly chance: Chance; readonly person?: string }

/** Enrol a device, or change its role, and give it the key that seals now. Refused as `member` or `limit`. */
export async function enrol(ring: Ring, signer: Signer, one: Enrollee, how: Enrolling): Promise<Ring> {
  needAdmin(ring, signer)
  const view = ring.said
  const id = idOf(fromHex(one.sign))
  const isRoot = view.roots.includes(hex(signer.public))
  need(isRoot || how.role !== 'admin', 'member', 'only the first wallet or the first recovery phrase can enrol an admin')
  need(!view.asked.has(id) && !view.revoked.has(id), 'member', `${id} was revoked permanently: it needs a new key`)
  for (const other of view.members.values()) {
    need(other.box !== one.box || other.family === id, 'member', `the box key of ${id} is that of ${other.id}: it needs its own`)
  }
  const counted = [...view.members.values()].filter(other => !isRoot || view.admissionOf(other.id)[0] === 0).map(other => other.family)
  const families = new Set([...counted, ...view.roots.map(key => idOf(fromHex(key)))])
  const before = families.size
  need(families.add(id).size <= Math.max(MOST_FAMILIES, before), 'limit', `${before} devices, wallets and recovery phrases are members of this vault; ${MOST_FAMILIES} are allowed`)
  const known = view.persons.get(id)
  const person = how.person ?? (view.members.has(id) ? known : undefined) ?? view.persons.get(idOf(signer.public))
  need(person !== undefined, 'member', 'the ring does not name the owner of the enrolling key')
  const grown = ring.with([await member(signer, ring.tag, one, how.role, laterSince(ring, signer, id, how.since), person)])
  return ring.plain ? grown : give(grown, signer, [id], how.chance)
}

/**
 * Done at every unlock: make a key if none seals, and slots for all members that lack the one that does. Returns the same ring if nothing
 * is missing.
 */
export async function giveKey(ring: Ring, signer: Signer, chance: Chance): Promise<Ring> {
  if (ring.plain) return ring
  needAdmin(ring, signer)
  if (ring.sealing === null) return rotate(ring, signer, chance)
  const { id } = ring.sealing
  const holders = new Set(ofKind(ring.statements, 'epoch').filter(one => one.ek === id).flatMap(one => one.for))
  const served = new Set([...holders].map(one => ring.said.members.get(one)?.box))
  const keyless = entitled(ring).filter(one => !holders.has(one) && !served.has(ring.said.members.get(one)?.box))
  return keyless.length > 0 ? give(ring, signer, keyless, chance) : ring
}

/** Families that may be given a key. */
const entitled = (ring: Ring): string[] =>
  [...ring.said.members.values()].filter(one => one.family === one.id && !ring.said.asked.has(one.id)).map(one => one.id)

/** Make a new epoch key for all current members. */
async function rotate(ring: Ring, signer: Signer, chance: Chance): Promise<Ring> {
  const epoch = ring.said.nextEpoch
  need(epoch < 2 ** 32, 'limit', 'this vault has used up its epoch numbers: move to a vault with a new key number')
  return addEpochs(ring, signer, new EpochKey(epoch, chance(32), ring.tag), entitled(ring), chance)
}

function give(ring: Ring, signer: Signer, ids: readonly string[], chance: Chance): Promise<Ring> {
  const key = ring.sealing
  need(key !== null, 'member', 'no key to share: no key may seal now, or this device does not have it')
  return addEpochs(ring, signer, key, ids, chance)
}

/**
 * Make the statements that give a key to the roots and to these members: one for those admitted by roots, and one for those of each set of
 * admins.
 */
async function addEpochs(ring: Ring, signer: Signer, key: EpochKey, ids: readonly string[], chance: Chance): Promise<Ring> {
  const view = ring.said
  const boxOf = (id: string): string => {
    const found = view.members.get(id)
    need(found !== undefined, 'member', `the ring does not say the box key of ${id}`)
    return found.box
  }
  const roots = view.roots.map(root => idOf(fromHex(root)))
  const families = new Map<string, Set<string>>([['', new Set(roots)]])
  for (const id of ids) {
    const of = view.admissionOf(id)[1]
    const some = families.get(of) ?? new Set(roots)
    families.set(of, some.add(id))
  }
  const revoked = view.revokedBy.map(([, id]) => id)
  const made: Statement[] = []
  for (const [of, served] of families) {
    const boxes = [...new Set([...served].map(boxOf))].sort(byCodePoints)
    const slots = boxes.map(box => base64url(sealBox(slotText(key), fromHex(box), chance(32))))
    made.push(
      await said(signer, ring.tag, {
        by: hex(signer.public),
        ek: key.id,
        epoch: key.epoch,
        for: [...served].sort(byCodePoints),
        not: [...view.asked].filter(id => !revoked.includes(id)).sort(byCodePoints),
        of: of === '' ? [] : of.split(' ').sort(byCodePoints),
        old: olderNames(ring, hex(signer.public)).filter(id => id !== key.id).sort(byCodePoints),
        slots: slots.sort(byCodePoints),
        t: 'epoch',
        v: 1,
        while: whoPutOut(ring)
      })
    )
  }
  return ring.with(made, [key])
}

/** The older keys that a new epoch of this signer names: those named by roots or itself, and the newest few named only by others. */
function olderNames(ring: Ring, by: string): string[] {
  const trusted = new Set([...ring.said.roots, by])
  const lasting = new Set(ofKind(ring.statements, 'epoch').filter(one => trusted.has(one.by)).flatMap(one => [one.ek, ...one.old]))
  const others = ring.keys.filter(one => !lasting.has(one.id)).map(one => one.id)
  return [...new Set([...ring.keys.filter(one => lasting.has(one.id)).map(one => one.id), ...others.slice(0, MOST_OTHER_KEYS)])]
}

/** The ids that each admin removed. An admin whose epoch only repeats others' removals is left out. */
function whoPutOut(ring: Ring): Record<string, string[]> {
  const own = new Set<string>()
  const passedOn = new Map<string, Set<string>>()
  for (const one of ring.statements) {
    if (one.t === 'revoke') own.add(`${one.byId} ${targetOf(one)}`)
    if (one.t !== 'epoch') continue
    for (const id of one.not) own.add(`${one.byId} ${id}`)
    for (const [admin, ids] of Object.entries(one.while)) {
      for (const id of ids) {
        if (admin === one.byId || ring.said.roots.includes(one.by)) own.add(`${admin} ${id}`)
        else passedOn.set(`${one.byId} ${id}`, (passedOn.get(`${one.byId} ${id}`) ?? new Set()).add(admin))
      }
    }
  }
  const byId = new Map<string, string[]>()
  for (const [admin, id] of ring.said.revokedBy) byId.set(id, [...(byId.get(id) ?? []), admin])
  const out = new Map<string, Set<string>>()
  for (const [id, admins] of byId) {
    const sources = new Set(admins.filter(admin => own.has(`${admin} ${id}`)))
    for (const admin of admins) {
      const passed = [...(passedOn.get(`${admin} ${id}`) ?? [])]
      if (sources.has(admin) || !passed.every(one => sources.has(one))) out.set(admin, (out.get(admin) ?? new Set()).add(id))
    }
  }
  return Object.fromEntries([...out].map(([admin, ids]) => [admin, [...ids].sort(byCodePoints)]))
}

/** Make a device's enrolment request for an admin; it contains no secret. */
export const enrolmentRequest = (tag: Bytes, one: EnrolmentRequest): Bytes =>
  utf8(canonical({ box: one.box, kind: one.kind, label: one.label, own: one.own, sign: one.sign, v: 1, vault: hex(tag) }))

/** Bits encoded by six words. */
const WORD_BITS = 11

/** Six words that both sides compare before a device is added: of the vault and of the device's keys. `list`: the 2,048 words of BIP-39. */
export function fingerprint(tag: Bytes, sign: string, box: string, list: readonly string[]): string[] {
  const digest = sha256(join('ipfsmem/v1/fingerprint', [0], tag, fromHex(sign), fromHex(box)))
  const bits = BigInt(`0x${hex(digest)}`)
  return Array.from({ length: 6 }, (_, n) => list[Number((bits >> BigInt(256 - WORD_BITS * (n + 1))) & 2047n)] as string)
}

/** Read a device's enrolment request for this vault. */
export async function readRequest(data: Bytes, tag: Bytes): Promise<EnrolmentRequest> {
  need(data.length <= MOST_REQUEST, 'limit', 'a request of more than 4 KiB')
  const it = fields(parseCanonical(data), ['box', 'kind', 'label', 'own', 'sign', 'v', 'vault'])
  need(it.v === 1 && it.vault === hex(tag), 'vault', 'a request to another vault')
  const sign = signKey(it.sign)
  need(isHex(it.box, 32) && isBoxKey(fromHex(it.box)) && isLabel(it.label), 'format', 'a request of another form')
  need(KINDS.includes(it.kind as Kind), 'format', 'an unknown kind')
  fromBase64url(it.own, 64)
  const request = { box: it.box, kind: it.kind as Kind, label: it.label, own: it.own as string, sign }
  await agreed(request, tag, null, null)
  return request
}
