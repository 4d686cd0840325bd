/** The statements of a key ring: their forms, their signatures, and the enrolment request (FORMAT.md 4). */

import {
  anyFields,
  type Bytes,
  canonical,
  fields,
  fromBase64url,
  fromHex,
  hex,
  isHex,
  isObject,
  isWhole,
  join,
  type Json,
  need,
  parseCanonical,
  sha256,
  sortedTexts
} from './bytes.ts'
import { idOf, isBoxKey, isSigningKey, verify } from './curves.ts'
import { isLabel } from './unseen.ts'

const MOST_KEEP = 256

export const ROLES = ['reader', 'writer', 'admin'] as const
export type Role = (typeof ROLES)[number]
export const KINDS = ['device', 'agent', 'wallet', 'words'] as const
export type Kind = (typeof KINDS)[number]

type Said<T extends string> = {
  readonly t: T
  /** The public key that signed it, and its id. */
  readonly by: string
  readonly byId: string
  /** Of the payload; it names the statement. */
  readonly hash: string
  readonly payload: Bytes
  readonly signature: string
}

export type Genesis = Said<'genesis'> & { readonly roots: readonly string[] }
export type Member = Said<'member'> & {
  readonly anchor: string | null
  readonly box: string
  readonly heir_of: string | null
  readonly id: string
  readonly kind: Kind
  readonly label: string
  readonly own: string
  readonly person: string
  readonly role: Role
  readonly sign: string
  readonly since: string
  readonly under: string | null
  readonly was: string | null
}
export type Epoch = Said<'epoch'> & {
  readonly ek: string
  readonly epoch: number
  readonly for: readonly string[]
  readonly not: readonly string[]
  readonly of: readonly string[]
  readonly old: readonly string[]
  readonly slots: readonly string[]
  readonly while: Readonly<Record<string, readonly string[]>>
}
export type Revoke = Said<'revoke'> & {
  readonly anchor: string | null
  readonly at: string
  readonly heirs: readonly string[]
  readonly keep: readonly string[]
  readonly n: Readonly<Record<string, number>>
  readonly person: string
  readonly rank: 0 | 1
  readonly sign: string
}
export type Statement = Genesis | Member | Epoch | Revoke

/** The form of a statement in a file. */
export type Envelope = { readonly k: string; readonly s: string }

const isId = (text: unknown): text is string => isHex(text, 8)
const isEpochNumber = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 1 && (value as number) < 2 ** 32

export function signKey(text: Json | undefined): string {
  need(isHex(text, 32) && isSigningKey(fromHex(text)), 'format', 'not a signing key')
  return text
}

const anchorOrNull = (text: Json | undefined): void => {
  if (text !== null) signKey(text)
}

type Form = Record<string, Json>

/** Checks of each form; each returns the key that must have signed. */
const FORMS: Readonly<Record<Statement['t'], (it: Form) => string>> = {
  genesis(it) {
    fields(it, ['roots', 't', 'v'])
    const { roots } = it
    need(Array.isArray(roots) && (roots.length === 1 || roots.length === 2) && new Set(roots).size === roots.length, 'format', 'not one root or two')
    return roots.map(signKey)[0] as string
  },
  member(it) {
    fields(it, ['anchor', 'box', 'by', 'heir_of', 'id', 'kind', 'label', 'own', 'person', 'role', 'sign', 'since', 't', 'under', 'v', 'was'])
    const [by, sign] = [signKey(it.by), signKey(it.sign)]
    need(isHex(it.box, 32) && isBoxKey(fromHex(it.box)), 'format', 'not a box key')
    anchorOrNull(it.anchor)
    need(it.id === idOf(fromHex(sign)), 'format', 'an id of another key')
    need(KINDS.includes(it.kind as Kind), 'format', 'an unknown kind')
    need((ROLES as readonly Json[]).includes(it.role as Json), 'format', 'an unknown role')
    need(isId(it.person) && isId(it.since) && isLabel(it.label), 'format', 'a person, clock or label of another form')
    if (it.heir_of === null) need(it.under === null && it.was === null, 'format', 'an enrolment of another form')
    else {
      need(it.heir_of === by && isHex(it.under, 32) && isId(it.was) && it.anchor === null, 'format', 'a successor of another form')
      need((it.kind === 'device' || it.kind === 'agent') && it.role !== 'admin' && sign !== by, 'format', 'a successor of another form')
    }
    return by
  },
  epoch(it) {
    fields(it, ['by', 'ek', 'epoch', 'for', 'not', 'of', 'old', 'slots', 't', 'v', 'while'])
    need(isId(it.ek) && isEpochNumber(it.epoch), 'format', 'not the name of an epoch key')
    for (const list of [it.for, it.not, it.of, it.old]) need(sortedTexts(list).every(isId), 'format', 'not an id')
    for (const [admin, ids] of Object.entries(anyFields(it.while))) {
      need(isId(admin) && sortedTexts(ids).every(isId) && (ids as Json[]).length > 0, 'format', 'not an id')
    }
    for (const slot of sortedTexts(it.slots)) fromBase64url(slot, 104)
    return signKey(it.by)
  },
  revoke(it) {
    fields(it, ['anchor', 'at', 'by', 'heirs', 'keep', 'n', 'person', 'rank', 'sign', 't', 'v'])
    need(it.rank === 0 || it.rank === 1, 'format', 'an unknown rank')
    signKey(it.sign)
    sortedTexts(it.heirs).forEach(signKey)
    anchorOrNull(it.anchor)
    need(sortedTexts(it.keep, MOST_KEEP).every(one => isHex(one, 32)), 'format', 'not the hash of a statement')
    need(isId(it.at) && isId(it.person), 'format', 'a clock or person of another form')
    for (const [id, n] of Object.entries(anyFields(it.n))) need(isId(id) && isWhole(n), 'format', 'not a counter')
    return signKey(it.by)
  }
}

/** Parse a statement; its signature is not checked. */
export function formed(envelope: unknown): Statement {
  const { k, s } = fields(envelope, ['k', 's'])
  const payload = fromBase64url(k)
  const it = parseCanonical(payload)
  need(isObject(it) && typeof it.t === 'string' && Object.hasOwn(FORMS, it.t) && it.v === 1, 'format', 'an unknown statement')
  const by = FORMS[it.t as Statement['t']](it as Form)
  fromBase64url(s, 64)
  return { ...it, by, byId: idOf(fromHex(by)), hash: hex(sha256(payload)), payload, signature: s as string } as unknown as Statement
}

/** The message with which a key agrees to its enrolment with this box key, anchor and family. */
export const possessionMessage = (it: { box: string; sign: string }, tag: Bytes, anchor: string | null, heirOf: string | null): Bytes =>
  join('ipfsmem/v1/possession', [0], tag, canonical({ anchor, box: it.box, heir_of: heirOf, sign: it.sign }))

/** The signed message of a statement. */
export const statementMessage = (payload: Bytes, tag: Bytes): Bytes => join('ipfsmem/v1/statement', [0], tag, payload)

/** Verify that the key of a member statement or a request agreed to it. */
export async function agreed(it: { box: string; own: string; sign: string }, tag: Bytes, anchor: string | null, heirOf: string | null): Promise<void> {
  const message = possessionMessage(it, tag, anchor, heirOf)
  need(await verify(fromHex(it.sign), message, fromBase64url(it.own, 64)), 'signature', 'a key that did not agree')
}

/** Verify that statements are signed for this vault by their signers, and agreed to by the keys that they enrol. */
export async function checkSigned(statements: readonly Statement[], tag: Bytes): Promise<void> {
  await Promise.all(
    statements.map(async one => {
      const message = statementMessage(one.payload, tag)
      need(await verify(fromHex(one.by), message, fromBase64url(one.signature, 64)), 'signature', 'a wrong signature')
      if (one.t === 'member') await agreed(one, tag, one.anchor, one.heir_of)
    })
  )
}

/** Tell whether a statement is in the part of a ring that anyone can read. */
export const isOpen = (one: Statement): boolean => one.t === 'genesis' || one.t === 'epoch' || (one.t === 'member' && one.role === 'admin')

/** Parse the statements of a file: sorted by hash, each once, all of kinds that belong in this part. */
export function formedList(list: unknown, isOpenPart: boolean): Statement[] {
  need(Array.isArray(list), 'format', 'no list of statements')
  const all = list.map(formed)
  all.forEach((one, i) => {
    need(i === 0 || (all[i - 1] as Statement).hash < one.hash, 'format', 'statements out of order')
    need(isOpen(one) === isOpenPart, 'format', 'a statement in the wrong part')
  })
  return all
}

export type EnrolmentRequest = { readonly box: string; readonly kind: Kind; readonly label: string; readonly own: string; readonly sign: string }
