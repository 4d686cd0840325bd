/** A published version from a CAR, read in this page only: no request is sent, and nothing is stored when the page is closed. */

import { type Bytes, Refused, unlessRefused } from './core/bytes.ts'
import { Blocks } from './core/blocks.ts'
import { readCar } from './core/car.ts'
import type { RootKeys } from './core/wallet.ts'
import { defaultEnvironment, volatileDevice, type Environment } from './device/device.ts'
import { MemoryError } from './device/errors.ts'
import { Replica } from './device/replica.ts'
import { Memory } from './memory.ts'
import { VolatileStorage } from './store/device_storage.ts'
import type { Provider } from './sync/provider.ts'
import { sync } from './sync/syncing.ts'

/** `damaged`: number of its blocks that do not match their CID; their contents are missing. */
export type OpenedCopy = { readonly memory: Memory; readonly root: string; readonly damaged: number }

const ANOTHER = 'Use another copy of this file, or one of an earlier day.'

/**
 * Open the version in a CAR with the keys of its wallet or recovery phrase. `MemoryError` if they do not open it, or too much of it is
 * damaged.
 */
export async function openCopy(car: Bytes, root: RootKeys, environment: Environment = defaultEnvironment): Promise<OpenedCopy> {
  const damaged: string[] = []
  const read = unlessRefused(() => readCar(car, damaged))
  const [first] = read?.roots ?? []
  if (read === null || first === undefined) throw new MemoryError('usage', 'this file contains no vault, or its beginning is damaged', ANOTHER)
  const held = new Map(read.blocks)
  const ring = new Blocks()
  for (const [cid, data] of read.blocks) ring.add(cid, data)
  if (unlessRefused(() => ring.read(first, 'keyring.json')) === null) throw new MemoryError('usage', 'the key ring in this file is missing or damaged', ANOTHER)
  // Passed as a tree, since each block was checked above.
  const reader = { name: 'this file', tree: async () => read.blocks, blocks: async (cids: readonly string[]) => new Map(cids.flatMap(cid => (held.has(cid) ? [[cid, held.get(cid) as Bytes] as const] : []))) }
  const file: Provider = { name: 'this file', reader, pins: async () => [first] }
  const [device, storage] = [await volatileDevice(environment, 'this page'), new VolatileStorage()]
  try {
    const { verdicts } = await sync(new Replica(device, storage, environment), [file], { root, begin: first })
    if (!verdicts[first]?.startsWith('joined')) throw new MemoryError('usage', 'the list of the memories in this file is damaged', ANOTHER)
  } catch (error) {
    if (error instanceof Refused && (error.kind === 'none' || error.kind === 'member')) throw new MemoryError('usage', 'these keys do not open this file', 'They may open another vault of this wallet.')
    if (error instanceof Refused && error.kind === 'damaged') throw new MemoryError('usage', 'the list of the memories in this file is damaged', ANOTHER)
    throw error
  }
  return { memory: await Memory.load({ device, storage, environment }), root: first, damaged: damaged.length }
}
