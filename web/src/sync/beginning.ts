/**
 * A new vault: its ring, and the names that lead to it, signed while the root keys are available (FORMAT.md 4 and 7).
 *
 * Nothing is made before it is certain that these keys have no vault at the providers: a wallet never gets a second vault by mistake.
 */

import { hex, Refused } from '../core/bytes.ts'
import { ipnsName } from '../core/cid.ts'
import { nextClock } from '../core/clock.ts'
import { signerOf } from '../core/curves.ts'
import { enrolleeOf, type Founder, newRing } from '../core/enrolling.ts'
import { keyringFolder } from '../core/unixfs.ts'
import { vaultTag } from '../core/ring.ts'
import { keysOfSecret, NO_ADDRESS, type RootKeys } from '../core/wallet.ts'
import { MemoryError } from '../device/errors.ts'
import { recordsText, type Replica } from '../device/replica.ts'
import { find } from './find.ts'
import { ANCHOR_DAYS, point } from './keep.ts'
import type { Block, Provider } from './provider.ts'
import { Run } from './run.ts'

export type BeginHow = {
  /** The wallet's keys, signed for twice; null for a vault without a wallet, which only the recovery phrase opens on a further device. */
  readonly root: RootKeys | null
  /** The keys of the recovery phrase; null for a vault that only the wallet opens. */
  readonly recovery: RootKeys | null
}

/** Create a vault on this device, durable when the promise resolves. A sync publishes it, with the returned keys. */
export async function begin(replica: Replica, providers: readonly Provider[], { root, recovery }: BeginHow): Promise<RootKeys> {
  if (root === null && recovery === null) throw new MemoryError('usage', 'without a wallet or a recovery phrase nothing could restore this vault')
  if (root !== null && root.check === null) throw new MemoryError('usage', 'a recovery phrase cannot be the first key of a vault', 'Pass a wallet, or no wallet and the recovery phrase.')
  if (recovery !== null && recovery.check !== null) throw new MemoryError('usage', 'the keys of the recovery phrase are not derived from words')
  const { device, environment } = replica
  const isWallet = root !== null
  const first = root ?? (await keysOfSecret({ secret: environment.chance(64), address: NO_ADDRESS, vault: 'default', keyNumber: 1 }))
  return replica.storage.exclusively('sync', async () => {
    await replica.storage.exclusively('write', () => replica.refresh())
    if (replica.ring !== null) throw new MemoryError('usage', 'this browser has a vault already', 'Open it, or make the new one under another name.')
    if (isWallet) await checkNone(replica, providers, first)
    const tag = vaultTag(first.admin, false)
    const since = nextClock(replica.kept.clock, environment.now())
    const founders: Founder[] = [founderOf(first, isWallet ? 'wallet' : 'this device', isWallet ? 'wallet' : 'device')]
    if (recovery !== null) founders.push(founderOf(recovery, 'recovery words', 'words'))
    const itself = await enrolleeOf(device.signer, device.box.public, device.label, tag)
    const ring = await newRing(tag, founders, itself, since, environment.chance)
    const run = new Run(replica, providers, {})
    const blocks: Block[] = []
    const folder = keyringFolder(ring.file(), (cid, data) => void blocks.push([cid, data]))
    await point(run, signerOf(first.headSeed), `/ipfs/${folder.cid}`, ANCHOR_DAYS)
    if (recovery !== null) await point(run, signerOf(recovery.headSeed), `/ipns/${ipnsName(first.head)}`, ANCHOR_DAYS)
    const announcing = { root: folder.cid, head: hex(first.head), also: recovery === null ? [] : [ipnsName(recovery.head)] }
    await replica.storage.exclusively('write', () =>
      replica.change({ ring: ring.kept(), clock: since, anchor: hex(first.head), announcing, records: recordsText(run.names) }, blocks)
    )
    return first
  })
}

const founderOf = (keys: RootKeys, label: string, kind: Founder['kind']): Founder => ({ signer: signerOf(keys.adminSeed), box: keys.box, anchor: keys.head, label, kind })

/** Require that these keys have no vault at these providers, all of which must answer. */
async function checkNone(replica: Replica, providers: readonly Provider[], root: RootKeys): Promise<void> {
  if (!providers.some(one => one.store !== undefined) || !providers.some(one => one.names !== undefined)) {
    throw new MemoryError('provider', 'no provider of blocks and names is configured, so this wallet may have a vault already', 'Name one, with its token.')
  }
  const run = new Run(replica, providers, { root })
  try {
    await find(run)
  } catch (error) {
    if (!(error instanceof Refused) || error.kind !== 'none') throw error
    const silent = new Set([...run.silent, ...run.incomplete])
    if (silent.size > 0) throw new MemoryError('provider', `nothing was made: ${[...silent].join(', ')} did not answer completely, and may hold the vault of this wallet`, 'Try again when all answer.')
    return
  }
  throw new MemoryError('usage', 'this wallet has a vault there already, so no second one was made', 'Open it; or sign for another vault or key number.')
}
