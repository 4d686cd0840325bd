/** Two events with a meaning: a memory went to another provider, and a further vault was made (FORMAT.md 1.4). What they say is for a person. */

import { isObject } from './bytes.ts'
import { normalTs, splitOwnId } from './timeline.ts'

const MOST_PLACES = 16
const MOST_SPEC = 512
const CONTROL = /[\x00-\x1f\x7f-\x9f]/

/** The device `by` published at `left`, and since `at` at `to`. */
export type Move = { readonly id: string; readonly by: string; readonly at: string; readonly left: readonly string[]; readonly to: string }
export type FurtherVault = { readonly address: string; readonly key_number: number; readonly name: string }

/** The device under whose own id an event of this type stands, when it has these names and no others. */
function ownWriter(event: Record<string, unknown>, type: string, names: readonly string[]): string | null {
  const wanted = ['ts', 'type', 'id', ...names]
  if (event.type !== type || Object.keys(event).length !== wanted.length || !wanted.every(name => Object.hasOwn(event, name))) return null
  return splitOwnId(String(event.id))?.device ?? null
}

const isSpec = (text: unknown): text is string =>
  typeof text === 'string' && text.isWellFormed() && text !== '' && [...text].length <= MOST_SPEC && !CONTROL.test(text)

/** The forwarding record that an event is, or null. */
export function readMove(event: unknown): Move | null {
  if (!isObject(event)) return null
  const by = ownWriter(event, 'ipfsmem-moved', ['from', 'to'])
  const { from, to } = event
  if (by === null || !Array.isArray(from) || from.length > MOST_PLACES || ![...from, to].every(isSpec)) return null
  return { id: event.id as string, by, at: normalTs(event.ts as string) as string, left: from as string[], to: to as string }
}

/** The further vault that an event names, or null. */
export function readVault(event: unknown): FurtherVault | null {
  if (!isObject(event) || ownWriter(event, 'ipfsmem-vault', ['address', 'key_number', 'name']) === null) return null
  const { address, key_number: keyNumber, name } = event
  if (typeof name !== 'string' || !/^[a-z0-9][a-z0-9-]{0,31}$(?![^])/.test(name)) return null
  if (typeof address !== 'string' || !/^0x[0-9a-f]{40}$(?![^])/.test(address)) return null
  if (!Number.isSafeInteger(keyNumber) || (keyNumber as number) < 1 || (keyNumber as number) > 2 ** 31 - 1) return null
  return { address, key_number: keyNumber as number, name }
}

/** The forwarding record that counts: the greatest (instant, id). */
export const newestMove = (moves: readonly Move[]): Move | null =>
  moves.reduce<Move | null>((best, one) => (best === null || one.at > best.at || (one.at === best.at && one.id > best.id) ? one : best), null)
