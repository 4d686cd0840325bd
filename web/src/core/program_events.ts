/**
 * Two events with a meaning: a vault moved to another provider, and a further vault was made (FORMAT.md 1.4). Their content is for a
 * person.
 */

import { isObject } from './bytes.ts'
import { normalTs, splitOwnId } from './timeline.ts'

const MOST_PLACES = 16
const MOST_SPEC = 512
const CONTROL = /[\x00-\x1f\x7f-\x9f]/

/** The device `by` published at `left`, and since `at` at `to`. */
export type Move = { readonly id: string; readonly by: string; readonly at: string; readonly left: readonly string[]; readonly to: string }
export type FurtherVault = { readonly address: string; readonly key_number: number; readonly name: string }

/** Return the device with whose own id an event of this type is written, if it has exactly these names. */
function ownWriter(event: Record<string, unknown>, type: string, names: readonly string[]): string | null {
  const wanted = ['ts', 'type', 'id', ...names]
  if (event.type !== type || Object.keys(event).length !== wanted.length || !wanted.every(name => Object.hasOwn(event, name))) return null
  return splitOwnId(String(event.id))?.device ?? null
}

const isSpec = (text: unknown): text is string =>
  typeof text === 'string' && text.isWellFormed() && text !== '' && [...text].length <= MOST_SPEC && !CONTROL.test(text)

/** Parse a forwarding record, or null. */
export function readMove(event: unknown): Move | null {
  if (!isObject(event)) return null
  const by = ownWriter(event, 'ipfsmem-moved', ['from', 'to'])
  const { from, to } = event
  if (by === null || !Array.isArray(from) || from.length > MOST_PLACES || ![...from, to].every(isSpec)) return null
  return { id: event.id as string, by, at: normalTs(event.ts as string) as string, left: from as string[], to: to as string }
}

/** Parse the event of a further vault, or null. */
export function readVault(event: unknown): FurtherVault | null {
  if (!isObject(event) || ownWriter(event, 'ipfsmem-vault', ['address', 'key_number', 'name']) === null) return null
  const { address, key_number: keyNumber, name } = event
  if (typeof name !== 'string' || !/^[a-z0-9][a-z0-9-]{0,31}$(?![^])/.test(name)) return null
  if (typeof address !== 'string' || !/^0x[0-9a-f]{40}$(?![^])/.test(address)) return null
  if (!Number.isSafeInteger(keyNumber) || (keyNumber as number) < 1 || (keyNumber as number) > 2 ** 31 - 1) return null
  return { address, key_number: keyNumber as number, name }
}

/** Return the valid forwarding record: the greatest (time, id). */
export const newestMove = (moves: readonly Move[]): Move | null =>
  moves.reduce<Move | null>((best, one) => (best === null || one.at > best.at || (one.at === best.at && one.id > best.id) ? one : best), null)
