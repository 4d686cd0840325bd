/** Publish: send the blocks that a provider lacks, then move names. */

import { type Bytes, fromHex, hex } from '../core/bytes.ts'
import { ipnsName } from '../core/cid.ts'
import type { Ring } from '../core/ring.ts'
import { pinName } from '../core/vault.ts'
import { treeOf } from './fetching.ts'
import type { Made } from './keep.ts'
import { type Block, type BlockStore, ProviderError } from './provider.ts'
import type { Run } from './run.ts'

const NOT_ANNOUNCED = 'other devices do not know this device yet: it is announced again at the next sync'

/** Send blocks to every provider, then put names. Returns the number of blocks sent, and whether any provider accepted our version. */
export async function publish(run: Run, made: Made, ring: Ring): Promise<{ sent: number; taken: boolean }> {
  const { replica } = run
  const { announcing } = made
  const anchor = replica.kept.anchor === '' ? null : fromHex(replica.kept.anchor)
  const name = anchor === null ? pinName(fromHex(ring.said.first as string)) : pinName(anchor)
  const has = new Set<string>()
  // A refusal is said also where reading failed before.
  const refused = new Set<string>()
  const failed = (error: unknown): void => run.failed(error, error instanceof ProviderError && error.refused ? refused : run.silent)
  let sent = 0
  for (const store of run.stores) {
    try {
      if (announcing !== null) sent += await place(run, store, announcing.root, name, false)
      sent += await place(run, store, made.root, name, true)
      has.add(store.name)
    } catch (error) {
      failed(error)
    }
  }
  if (run.stores.length === 0 || has.size === 0) {
    run.say('not-sent', 'nothing could be published: unsynced changes wait on this device; sync, or export them as a file')
    if (announcing !== null) run.say('not-announced', NOT_ANNOUNCED)
    return { sent, taken: false }
  }
  const records = made.moved.flatMap(one => {
    const record = run.names.get(one)
    return record === undefined ? [] : [[one, record] as const]
  })
  const anchorName = announcing === null ? null : ipnsName(fromHex(announcing.head))
  let isAnnounced = announcing === null
  for (const server of run.nameServers) {
    // A provider that did not accept a root gets no name that leads to it; one that stores no blocks does.
    if (server.putRecord === undefined || (run.providers.some(one => one.store?.name === server.name) && !has.has(server.name))) continue
    for (const [one, record] of records) {
      try {
        const there = run.shown.get(`${server.name} ${one}`)
        if (there == null || hex(there) !== hex(record)) await server.putRecord(one, record)
        if (one === anchorName) isAnnounced = true
      } catch (error) {
        failed(error)
      }
    }
  }
  if (!isAnnounced) run.say('not-announced', NOT_ANNOUNCED)
  else if (announcing !== null) {
    await replica.storage.exclusively('write', async () => {
      await replica.refresh()
      await replica.change({ announcing: null })
    })
  }
  return { sent, taken: sent > 0 || made.isNew }
}

/** Send a provider the missing blocks of a root, and pin it. Blocks below the last root that was complete there were sent before. */
async function place(run: Run, store: BlockStore, root: string, name: string, isState: boolean): Promise<number> {
  const { replica } = run
  const before = replica.kept.placed[store.name]
  if (before === root && (await store.has([root])).has(root)) return 0
  const old = store.takesTrees === true || before === undefined || !(await store.has([before])).has(before) ? new Set<string>() : treeOf(before, replica.blocks)
  const holes = new Set<string>()
  const tree = treeOf(root, replica.blocks, old, holes)
  const there = await store.has([...tree, ...holes])
  if (![...holes].every(cid => there.has(cid))) throw new ProviderError(store.name, true, `${store.name} did not receive the published data: one part is missing both here and there; the next sync requests it again`)
  const missing = [...tree].filter(cid => !there.has(cid))
  // Children before parents: the tree was walked from its top.
  const blocks = missing.reverse().map((cid): Block => [cid, replica.blocks.peek(cid) as Bytes])
  if (blocks.length > 0) await store.put(root, blocks, name)
  await store.pin(root, name)
  if (isState && root !== before) {
    await replica.storage.exclusively('write', async () => {
      await replica.refresh()
      await replica.change({ placed: { [store.name]: root } })
    })
  }
  return blocks.length
}
