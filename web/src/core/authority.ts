/** The meaning of a ring's statements: members, revoked ids, the key that seals, and the person of each member (FORMAT.md 4). */

import { byCodePoints, compare, fromHex, greatest } from './bytes.ts'
import { idOf } from './curves.ts'
import { byHash, goneBy, isEnrolment, isHeir, ofKind, pairsOf, targetOf } from './retention_rules.ts'
import { type Epoch, type Member, ROLES, type Revoke, type Role, type Statement } from './statements.ts'

/** Epochs further ahead of the roots' are ignored. */
const REACH = 65_536

export type RingMember = Member & {
  /** The id of the enrolment with which it came. */
  readonly family: string
}

/** The rank of the nearest member that admitted it (0 a root, 1 an admin, 2 unknown), and the admins. */
export type Admission = readonly [rank: number, admins: string]

export class Authority {
  readonly roots: readonly string[]
  readonly first: string | undefined
  /** Names of all epoch keys that may be used to read. */
  readonly names: ReadonlySet<string>
  readonly revoked: ReadonlySet<string>
  /** Ids that every new epoch must exclude. */
  readonly asked: ReadonlySet<string>
  /** (admin, id) of ids removed only by admins. */
  readonly revokedBy: readonly (readonly [admin: string, id: string])[]
  readonly members: ReadonlyMap<string, RingMember>
  readonly families: ReadonlyMap<string, string>
  readonly nextEpoch: number
  /** Number and name of the key that seals now. */
  readonly seals: readonly [epoch: number, ek: string] | null
  /** Signing keys of each id. */
  readonly keysOf: ReadonlyMap<string, readonly string[]>
  readonly persons: ReadonlyMap<string, string>
  readonly givenUp: ReadonlySet<string>
  readonly #ranks: ReadonlyMap<string, number>
  readonly #enrolments: readonly Member[]

  constructor(kept: readonly Statement[]) {
    const births = ofKind(kept, 'genesis').sort(byHash)
    this.first = births[0]?.by
    this.roots = [...new Set(births.flatMap(one => one.roots))]
    const enrolments = kept.filter(isEnrolment)
    const heirs = kept.filter(isHeir).sort((a, b) => compare([a.by, a.hash], [b.by, b.hash]))
    const revokes = ofKind(kept, 'revoke')
    const epochs = ofKind(kept, 'epoch')
    const isRoot = (key: string): boolean => this.roots.includes(key)
    const rootIds = new Set(this.roots.map(key => idOf(fromHex(key))))
    const made = new Set(enrolments.filter(one => isRoot(one.by) && one.role === 'admin').map(one => one.id))
    const counting = revokes.filter(one => !isRoot(one.sign) && (isRoot(one.by) || !made.has(targetOf(one))))
    const enrolmentsByHash = new Map(enrolments.map(one => [one.hash, one]))
    this.#enrolments = enrolments
    this.names = new Set(epochs.flatMap(one => [one.ek, ...one.old]))
    this.revoked = new Set(counting.map(targetOf))

    const forGood = [...counting, ...epochs].filter(one => isRoot(one.by)).flatMap(one => (one.t === 'revoke' ? [targetOf(one)] : one.not))
    const asked = new Set(forGood.filter(id => !rootIds.has(id)))
    this.revokedBy = revokedByAdmins(epochs, revokes, counting, isRoot).filter(([, id]) => !asked.has(id) && !rootIds.has(id) && !made.has(id))
    for (const [, id] of this.revokedBy) asked.add(id)
    this.asked = asked

    this.members = membersOf(enrolments, heirs, enrolmentsByHash, this.revoked, made, rootIds, isRoot)
    this.families = familiesOf(enrolments, heirs, this.members, this.revoked, counting, isRoot)
    const reach = Math.max(0, ...epochs.filter(one => isRoot(one.by)).map(one => one.epoch)) + REACH
    const near = epochs.filter(one => one.epoch <= reach)
    this.nextEpoch = 1 + Math.max(0, ...near.map(one => one.epoch))
    const may = near.filter(one =>
      epochs
        .filter(other => other.ek === one.ek)
        .every(other => [...rootIds].every(id => other.for.includes(id)) && [...asked].every(id => goneBy(other).includes(id)))
    )
    const sealing = may.length > 0 ? greatest(may, one => [one.epoch, one.ek]) : null
    this.seals = sealing && [sealing.epoch, sealing.ek]
    this.keysOf = keysOf(this.roots, enrolments, heirs, revokes.filter(one => isRoot(one.by)))
    this.#ranks = ranksOf(rootIds, enrolments, revokes, isRoot)
    this.persons = personsOf(this.families, enrolments, revokes, isRoot)
    const isLeft = (id: string): boolean =>
      heirs.some(one => one.was === id && this.families.get(id) === enrolmentsByHash.get(one.under as string)?.id)
    const known = new Set([...this.keysOf.keys(), ...this.families.keys()])
    this.givenUp = new Set([...known].filter(id => !this.keysOf.has(id) || asked.has(this.families.get(id) ?? id) || isLeft(id)))
  }

  admissionOf(id: string): Admission {
    const family = this.families.get(id) ?? id
    const rank = this.#ranks.get(family) ?? 2
    const admins = this.#enrolments.filter(one => one.id === family).map(one => one.byId)
    return [rank, rank === 1 ? [...new Set(admins)].sort(byCodePoints).join(' ') : '']
  }

  /** Anchor keys of roots and of the members that they admitted, the first root's first. */
  anchors(): string[] {
    const all = [...this.members.values()].filter(one => one.anchor !== null && this.roots.includes(one.by))
    return [...all.filter(one => one.sign === this.first), ...all.filter(one => one.sign !== this.first)].map(one => one.anchor as string)
  }
}

type IsRoot = (key: string) => boolean

/**
 * The ids removed by admins, unless roots revoked these without keeping that: the admins' own removals first, then those that they passed
 * on.
 */
function revokedByAdmins(epochs: readonly Epoch[], revokes: readonly Revoke[], counting: readonly Revoke[], isRoot: IsRoot): [string, string][] {
  const ended = new Set(revokes.filter(one => isRoot(one.by)).map(targetOf))
  const lasting = (one: Epoch): [string, string][] => pairsOf(one).filter(([admin]) => !ended.has(admin))
  const own = epochs.flatMap(one => (isRoot(one.by) ? lasting(one) : one.not.map((id): [string, string] => [one.byId, id])))
  const passedOn = epochs.filter(one => !isRoot(one.by)).flatMap(one => lasting(one).map(([, id]): [string, string] => [one.byId, id]))
  const out = counting.map((one): [string, string] => [one.byId, targetOf(one)])
  for (const more of [own, passedOn]) {
    const known = new Set(out.map(([, id]) => id))
    out.push(...more.filter(([, id]) => !known.has(id)))
  }
  return out
}

const strongest = (all: readonly Member[], isRoot: IsRoot): Member => greatest(all, one => [isRoot(one.by) ? 1 : 0, one.since, one.hash])

function membersOf(
  enrolments: readonly Member[],
  heirs: readonly Member[],
  byHashes: ReadonlyMap<string, Member>,
  revoked: ReadonlySet<string>,
  made: ReadonlySet<string>,
  rootIds: ReadonlySet<string>,
  isRoot: IsRoot
): Map<string, RingMember> {
  const out = new Map<string, RingMember>()
  const ids = new Set(enrolments.map(one => one.id))
  for (const id of ids) {
    if (revoked.has(id)) continue
    const best = strongest(enrolments.filter(one => one.id === id), isRoot)
    out.set(id, { ...best, role: made.has(id) || rootIds.has(id) ? 'admin' : best.role, family: id })
  }
  for (const one of heirs) {
    const base = byHashes.get(one.under as string) as Member
    const head = out.get(base.id)
    if (head === undefined || ids.has(one.id) || revoked.has(one.id) || out.has(one.id) || one.box !== base.box) continue
    const role = ROLES[Math.min(ROLES.indexOf(one.role), ROLES.indexOf(head.role))] as Role
    out.set(one.id, { ...one, role, family: base.id })
  }
  return out
}

/** The family of each id: by enrolment, membership, being revoked, naming in a revoke, or claim, in this order. */
function familiesOf(
  enrolments: readonly Member[],
  heirs: readonly Member[],
  members: ReadonlyMap<string, RingMember>,
  revoked: ReadonlySet<string>,
  counting: readonly Revoke[],
  isRoot: IsRoot
): Map<string, string> {
  const out = new Map(enrolments.map(one => [one.id, one.id]))
  const within = (id: string, family: string): void => {
    if (!out.has(id)) out.set(id, family)
  }
  for (const one of members.values()) within(one.id, one.family)
  for (const id of revoked) within(id, id)
  for (const one of [...counting].sort((a, b) => byCodePoints(targetOf(a), targetOf(b)))) {
    for (const key of isRoot(one.by) ? one.heirs : []) within(idOf(fromHex(key)), targetOf(one))
  }
  for (const one of heirs) within(one.id, one.byId)
  return out
}

function keysOf(roots: readonly string[], enrolments: readonly Member[], heirs: readonly Member[], revokes: readonly Revoke[]): Map<string, string[]> {
  const out = new Map<string, string[]>()
  const keys = [...roots, ...[...enrolments, ...heirs].map(one => one.sign), ...revokes.flatMap(one => [one.sign, ...one.heirs])]
  for (const key of keys) {
    const id = idOf(fromHex(key))
    out.set(id, [...new Set([...(out.get(id) ?? []), key])].sort(byCodePoints))
  }
  return out
}

function ranksOf(rootIds: ReadonlySet<string>, enrolments: readonly Member[], revokes: readonly Revoke[], isRoot: IsRoot): Map<string, number> {
  const out = new Map([...rootIds].map(id => [id, 0]))
  const put = (id: string, rank: number): void => void out.set(id, Math.min(rank, out.get(id) ?? rank))
  for (const one of enrolments) put(one.id, isRoot(one.by) ? 0 : 1)
  for (const one of revokes) if (isRoot(one.by)) put(targetOf(one), one.rank)
  return out
}

/** The person of each id; ids without a person are absent. */
function personsOf(families: ReadonlyMap<string, string>, enrolments: readonly Member[], revokes: readonly Revoke[], isRoot: IsRoot): Map<string, string> {
  const idsOfPerson = new Map<string, Set<string>>()
  for (const one of enrolments.filter(one => isRoot(one.by))) idsOfPerson.set(one.person, (idsOfPerson.get(one.person) ?? new Set()).add(one.id))
  const out = new Map<string, string>()
  /** Ids revoked by roots: enrolments by them are dropped. */
  const final = new Map<string, string>()
  const byRoots = revokes.filter(one => isRoot(one.by) && !isRoot(one.sign)).sort((a, b) => byCodePoints(b.person, a.person))
  for (const one of byRoots) final.set(targetOf(one), one.person)
  for (const id of new Set(families.values())) {
    const all = enrolments.filter(one => one.id === id)
    if (all.length === 0) continue
    const best = strongest(all, isRoot)
    const others = [...(idsOfPerson.get(best.person) ?? [])].filter(one => one !== id)
    const shares = others.includes(best.byId) || final.get(best.byId) === best.person
    if (isRoot(best.by) || others.length === 0 || shares) out.set(id, best.person)
  }
  for (const [id, person] of final) out.set(id, person)
  for (const [id, family] of families) {
    const person = out.get(family)
    if (id !== family && person !== undefined) out.set(id, person)
  }
  return out
}
