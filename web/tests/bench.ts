/**
 * How long the client takes at some sizes, in Node and beside the network: the provider is a table in this process.
 *
 * `node build/vectors/bench.js 5000 10000`: one line of JSON for each size, of each step the milliseconds that passed and those of the
 * processor, which say more on a machine that does other things too.
 */

import type { Bytes } from '../src/core/bytes.ts'
import { keysOfSecret, newRecoveryWords, NO_ADDRESS } from '../src/core/wallet.ts'
import { defaultEnvironment, volatileDevice } from '../src/device/device.ts'
import { Memory } from '../src/memory.ts'
import { VolatileStorage } from '../src/store/device_storage.ts'
import type { Block, Provider } from '../src/sync/provider.ts'
import { linksOf } from '../src/core/blocks.ts'

function table(): Provider {
  const kept = new Map<string, Bytes>()
  const records = new Map<string, Bytes>()
  const some = (cids: readonly string[]): Map<string, Bytes> => new Map(cids.flatMap(cid => (kept.has(cid) ? [[cid, kept.get(cid) as Bytes] as const] : [])))
  const reader = {
    name: 'table',
    blocks: async (cids: readonly string[]) => some(cids),
    tree: async (root: string): Promise<Block[]> => {
      const out = new Map<string, Bytes>()
      const left = [root]
      for (let cid = left.pop(); cid !== undefined; cid = left.pop()) {
        const data = kept.get(cid)
        if (data === undefined || out.has(cid)) continue
        out.set(cid, data)
        left.push(...[...linksOf(cid, data)].reverse())
      }
      return [...out]
    }
  }
  const store = {
    ...reader,
    has: async (cids: readonly string[]) => new Set(some(cids).keys()),
    put: async (_: string, blocks: readonly Block[]) => void blocks.forEach(([cid, data]) => kept.set(cid, data)),
    pin: async () => undefined,
    unpin: async () => undefined
  }
  const names = { name: 'table', record: async (name: string) => records.get(name) ?? null, putRecord: async (name: string, record: Bytes) => void records.set(name, record) }
  return { name: 'table', reader, store, names }
}

const text = (n: number): string => `Memory ${n} says that ${['deploys', 'reviews', 'plans', 'tests'][n % 4]} of part ${n % 97} wait for ${n % 13} days, and that nobody writes to number ${n}. `.repeat(3)

type Times = Record<string, readonly [passed: number, busy: number]>

async function timed<T>(times: Times, name: string, work: () => T | Promise<T>): Promise<T> {
  const [start, used] = [performance.now(), process.cpuUsage()]
  const out = await work()
  const { user, system } = process.cpuUsage(used)
  times[name] = [Math.round(performance.now() - start), Math.round((user + system) / 1000)]
  return out
}

async function measured(size: number): Promise<Times> {
  const times: Times = {}
  const provider = table()
  const { words, keys } = newRecoveryWords(defaultEnvironment.chance)
  if (words === '') throw new Error('no words')
  const root = await keysOfSecret({ secret: defaultEnvironment.chance(64), address: NO_ADDRESS, vault: 'default', keyNumber: 1 })
  const first = { device: await volatileDevice(defaultEnvironment, 'first'), storage: new VolatileStorage(), providers: [provider] }
  const memory = await Memory.create({ ...first, root, recovery: keys })
  const files = Object.fromEntries(Array.from({ length: size }, (_, n) => [`memory_${n}.md`, `---\nname: Memory ${n}\ndescription: About part ${n % 97}\ntype: project\ncreated: 2026-11-01\nupdated: 2026-11-02\n---\n\n${text(n)}\n`]))
  await timed(times, 'import all', () => memory.import(JSON.stringify({ v: 'memory/0.1', files, timeline: [], index: '' })))
  await timed(times, 'first sync', () => memory.sync())
  await timed(times, 'first list', () => memory.list().length)
  await timed(times, 'list again', () => memory.list().length)
  await timed(times, 'one write', () => memory.write('memory_7', 'Another text.'))
  const many = 100
  await timed(times, `${many} writes`, async () => {
    for (let n = 0; n < many; n++) await memory.write(`memory_${n * 3}`, `Another text ${n}.`)
  })
  await timed(times, 'sync of these', () => memory.sync())
  await memory.write('memory_9', 'One more text.')
  await timed(times, 'sync of one write', () => memory.sync())
  await timed(times, 'sync of nothing', () => memory.sync())
  await timed(times, 'first recall', () => memory.recall('who waits for part 13'))
  await timed(times, 'recall again', () => memory.recall('deploys of part 14'))
  await timed(times, 'context', () => memory.context({ query: 'deploys of part 14', preview: true }))
  const second = { device: await volatileDevice(defaultEnvironment, 'second'), storage: new VolatileStorage(), providers: [provider] }
  const other = await timed(times, 'sign to list', async () => {
    const found = await Memory.load({ ...second, root })
    if (found.list().length !== size) throw new Error('not all are listed')
    return found
  })
  await timed(times, 'open again to list', async () => (await Memory.load(second)).list().length)
  await other.write('memory_3', 'Written by the other.')
  await other.sync()
  await timed(times, "sync of another's write", () => memory.sync())
  if (memory.read('memory_3')?.body !== 'Written by the other.') throw new Error('what the other wrote is not shown')
  return times
}

for (const size of process.argv.slice(2)) console.log(JSON.stringify({ memories: Number(size), ...(await measured(Number(size))) }))
