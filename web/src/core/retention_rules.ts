/** The valid statements of a ring: the "drops" (a) to (h) of FORMAT.md 4. */

import { byCodePoints, compare, fromHex } from './bytes.ts'
import { idOf } from './curves.ts'
import type { Epoch, Member, Revoke, Statement } from './statements.ts'

const MOST_HEIRS = 8

export type Enrolment = Member & { readonly heir_of: null }
export type Heir = Member & { readonly heir_of: string }

export const ofKind = <T extends Statement['t']>(all: readonly Statement[], t: T): Extract<Statement, { t: T }>[] =>
  all.filter((one): one is Extract<Statement, { t: T }> => one.t === t)
export const isEnrolment = (one: Statement): one is Enrolment => one.t === 'member' && one.heir_of === null
export const isHeir = (one: Statement): one is Heir => one.t === 'member' && one.heir_of !== null
export const targetOf = (one: Revoke): string => idOf(fromHex(one.sign))
export const byHash = (a: Statement, b: Statement): number => byCodePoints(a.hash, b.hash)
/** All ids that an epoch excludes, and (admin, id) of those removed only by admins. */
export const goneBy = (one: Epoch): string[] => [...one.not, ...Object.values(one.while).flat()]
export const pairsOf = (one: Epoch): [admin: string, id: string][] =>
  Object.entries(one.while).flatMap(([admin, ids]) => ids.map((id): [string, string] => [admin, id]))

const holdsAll = (list: readonly string[], others: readonly string[]): boolean => others.every(one => list.includes(one))

/** Return the valid statements, by hash. */
export function keptStatements(all: readonly Statement[]): Statement[] {
  const roots = new Set(ofKind(all, 'genesis').flatMap(one => one.roots))
  const isRoot = (key: string): boolean => roots.has(key)
  const enrolled = all.filter(isEnrolment)
  const admins = new Set(enrolled.filter(one => isRoot(one.by) && one.role === 'admin' && !isRoot(one.sign)).map(one => one.sign))
  const revokes = new Map<string, Revoke[]>()
  for (const one of ofKind(all, 'revoke')) {
    if (!isRoot(one.by) || isRoot(one.sign)) continue
    revokes.set(targetOf(one), [...(revokes.get(targetOf(one)) ?? []), one])
  }
  /** Tell whether a statement is by a root, by an admin that no root revoked, or kept by every revoke of its signer. */
  const maySay = (one: Statement): boolean => {
    if (isRoot(one.by)) return true
    const gone = revokes.get(one.byId)
    return gone === undefined ? admins.has(one.by) : gone.every(revoke => revoke.keep.includes(one.hash))
  }
  /** Tell whether no statement of an id is kept by all revokes of it by roots. */
  const nothingStands = (id: string): boolean => {
    const [first, ...more] = revokes.get(id) ?? []
    return first !== undefined && !first.keep.some(hash => more.every(revoke => revoke.keep.includes(hash)))
  }
  const counts = (one: Statement): boolean => {
    if (one.t === 'genesis') return true
    if (isHeir(one) || !maySay(one)) return false
    if (one.t === 'member') {
      if (isRoot(one.sign)) return one.by === one.sign
      return (one.role !== 'admin' || isRoot(one.by)) && !revokes.has(one.id)
    }
    if (one.t === 'revoke') return isRoot(one.by) || !isRoot(one.sign)
    return ![...one.for, one.byId].some(id => goneBy(one).includes(id)) && !one.of.some(nothingStands)
  }
  const kept = all.filter(counts)
  const enrolments = new Map(kept.filter(isEnrolment).map(one => [one.hash, one]))
  const heirs = new Map<string, Member[]>()
  for (const one of all.filter(isHeir)) {
    const under = one.under as string
    if (enrolments.get(under)?.sign !== one.by || isRoot(one.by) || isRoot(one.sign)) continue
    heirs.set(under, [...(heirs.get(under) ?? []), one])
  }
  for (const some of heirs.values()) kept.push(...some.sort(byHash).slice(0, MOST_HEIRS))
  const epochs = ofKind(kept, 'epoch')
  const outdoes = (a: Epoch, b: Epoch): boolean => a !== b && isRoot(a.by) && saysAllOf(a, b, isRoot(b.by))
  const said = ofKind(kept, 'revoke')
  const lost = new Set<Statement>([
    ...epochs.filter(b => epochs.some(a => outdoes(a, b) && !(outdoes(b, a) && b.hash < a.hash))),
    ...said.filter(b => said.some(a => isRoot(a.by) && isRoot(b.by) && makesNeedless(a, b)))
  ])
  return kept.filter(one => !lost.has(one)).sort(byHash)
}

function saysAllOf(a: Epoch, b: Epoch, isByRoot: boolean): boolean {
  return (
    compare([a.epoch, a.ek], [b.epoch, b.ek]) >= 0 &&
    holdsAll(a.not, b.not) &&
    pairsOf(b).every(([admin, id]) => a.not.includes(id) || a.not.includes(admin) || (a.while[admin] ?? []).includes(id)) &&
    holdsAll([...b.of, ...(isByRoot ? [] : [b.byId])], a.of) &&
    holdsAll([...a.for, ...goneBy(a)], b.for) &&
    holdsAll(a.old, b.old) &&
    (a.ek === b.ek || a.old.includes(b.ek))
  )
}

/** Tell whether `a` keeps fewer statements than `b`, a revoke of the same key, and says everything else that `b` says. */
const makesNeedless = (a: Revoke, b: Revoke): boolean =>
  a.sign === b.sign &&
  a.keep.length < b.keep.length &&
  holdsAll(b.keep, a.keep) &&
  Object.entries(a.n).every(([id, count]) => count <= (b.n[id] ?? 0)) &&
  holdsAll(a.heirs, b.heirs) &&
  (b.anchor === null || b.anchor === a.anchor) &&
  a.person === b.person &&
  a.rank <= b.rank
