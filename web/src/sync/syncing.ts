/**
 * One sync: find, verify and join what others published, then publish what this device has (FORMAT.md 7).
 *
 * Its steps: find, join, administer (only with an unlocked root), keep, publish. A failing provider costs time, never a text.
 */

import { idOf } from '../core/curves.ts'
import type { VaultReading } from '../core/vault.ts'
import { MemoryError } from '../device/errors.ts'
import type { Replica } from '../device/replica.ts'
import { find, type Found } from './find.ts'
import type { Provider } from './provider.ts'
import { Run, type SyncHow, type SyncReport } from './run.ts'

export type { Notice, Pointer, SyncHow, SyncReport } from './run.ts'

/** Sync once. One at a time; writes continue meanwhile. */
export function sync(replica: Replica, providers: readonly Provider[], how: SyncHow = {}): Promise<SyncReport> {
  return replica.storage.exclusively('sync', async () => {
    await replica.storage.exclusively('write', () => replica.refresh())
    const run = new Run(replica, providers, how)
    how.progress?.('looking')
    const found = await find(run)
    how.progress?.('reading')
    const past = { state: replica.state, joined: new Set(replica.kept.joined) }
    const { revision } = replica
    const reading = await found.reader.joinAll(found.ring, past)
    const news = reading.heads.filter(one => !past.joined.has(one.hash))
    const storing = async () => {
      how.progress?.('keeping')
      // Reading and writing adds no statements to a ring, so this is loaded only with an unlocked root.
      const ring = how.root ? await (await import('./administer.ts')).administer(run, reading.ring, how.root) : reading.ring
      const { keep } = await import('./keep.ts')
      return { ring, made: await replica.storage.exclusively('write', () => keep(run, found, reading, ring, revision)) }
    }
    checkStillMe(run, found, reading)
    tell(run, reading)
    await run.askForMissing(reading.state)
    const { made, ring } = await (replica.ring === null ? ahead(run, reading, storing) : storing())
    how.progress?.('publishing')
    const { sent, taken } = made === null ? { sent: 0, taken: false } : await (await import('./publish.ts')).publish(run, made, ring)
    return {
      root: made?.root ?? null,
      joined: news.some(one => one.dev !== replica.device.id),
      published: taken,
      verdicts: reading.verdicts,
      notices: run.notices,
      sentBlocks: sent
    }
  })
}

/** Show the result of a first sync before it is stored: sealing, storing and publishing take longer than the rest. */
async function ahead<T>({ replica, how }: Run, { ring, state }: VaultReading, storing: () => Promise<T>): Promise<T> {
  replica.showAhead({ ring, entries: state.entries }, how.root ? ring.said.persons.get(idOf(how.root.admin)) : undefined)
  try {
    await how.shown?.()
    return await storing()
  } catch (error) {
    replica.showAhead(null)
    throw error
  }
}

/** Require that this device's key published nothing that this device did not make: otherwise it was restored or copied. */
function checkStillMe(run: Run, found: Found, reading: VaultReading): void {
  const { device, kept } = run.replica
  const { heads, verdicts } = reading
  const own = found.reader.rootOfDevice(device.signer.public)
  if (own !== null && own !== kept.commit?.root && ['damaged', 'unread'].includes(verdicts[own] ?? '')) {
    throw new MemoryError('provider', "the data under this device's own name cannot be read now, so nothing was published", 'Try again later.')
  }
  for (const head of heads) {
    const pair = head.seen.get(device.id)
    if (pair !== undefined && !kept.pairs.some(([n, r]) => n === pair.n && r === pair.r)) {
      throw new MemoryError(
        'copied',
        'the data of this device was restored from a backup or copied: other devices know writes that this device lacks',
        'Export the newer texts of this device, then remove this device here and open the vault again.'
      )
    }
  }
  const { asked } = found.ring.said
  if (asked.has(found.ring.said.families.get(device.id) ?? device.id)) {
    throw new MemoryError('member', 'this device was removed from the vault', 'Open the vault again with the wallet or the recovery phrase.')
  }
}

function tell(run: Run, reading: VaultReading): void {
  for (const verdict of Object.values(reading.verdicts)) {
    if (verdict === 'damaged' || verdict === 'unread') run.say('damaged', 'a newest version of another device cannot be read completely now; it may contain newer texts')
    else if (verdict === 'held') run.say('held', 'two copies of one device wrote at once; what one of them wrote is not shown yet')
    else if (verdict.startsWith('refused')) run.say('refused', 'a version was refused: not all of its commits are signed by members with write access')
  }
}
