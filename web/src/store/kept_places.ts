/**
 * The providers of this browser's vault, with their write tokens: sealed under a key of this device that no script can read, and never part
 * of the vault.
 */

import { fromUtf8, isObject, utf8 } from '../core/bytes.ts'
import type { RowSeal } from '../device/device.ts'
import type { Bytes } from '../core/bytes.ts'
import type { Database } from './idb.ts'

/** A provider's spec, and its write token. */
export type Spec = string | { readonly at: string; readonly token?: string | null }

const PLACES = 'places'

export async function keepPlaces(db: Database, rows: RowSeal, places: readonly Spec[]): Promise<void> {
  await db.put('keys', await rows.seal(utf8(JSON.stringify(places))), PLACES)
}

/** Empty if none were stored. */
export async function keptPlaces(db: Database, rows: RowSeal): Promise<readonly Spec[]> {
  const kept = (await db.get('keys', PLACES)) as Bytes | undefined
  if (kept === undefined) return []
  const places: unknown = JSON.parse(fromUtf8(await rows.open(kept)))
  return Array.isArray(places) ? places.filter((one): one is Spec => typeof one === 'string' || (isObject(one) && typeof one.at === 'string')) : []
}
