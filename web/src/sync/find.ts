/** Find a vault: follow names and fetch versions, until nothing new is learned. */

import { fromHex, unlessRefused } from '../core/bytes.ts'
import { boxKeyOf } from '../core/curves.ts'
import { asVersion1, ipnsName, parseCid } from '../core/cid.ts'
import type { Ring } from '../core/ring.ts'
import { MOST_LISTED, MOST_RECORDS, pinName, type ReaderInput, VaultReader } from '../core/vault.ts'
import { MemoryError } from '../device/errors.ts'
import { ProviderError } from './provider.ts'
import type { Run } from './run.ts'

/** The names through which an anchor leads, itself first. */
function ledOver(reader: VaultReader, anchor: string): string[] {
  const names = [anchor]
  for (let name = reader.target(anchor)?.name; name && names.length < MOST_RECORDS; name = reader.target(name)?.name) names.push(name)
  return names
}

export type Found = { readonly reader: VaultReader; readonly ring: Ring }

/** Follow names and fetch roots, joining the ring, until nothing new is learned. */
export async function find(run: Run): Promise<Found> {
  const { replica, how } = run
  const root = how.root ?? null
  const boxes = [replica.device.box, ...(root === null ? [] : [boxKeyOf(root.boxSecret)])]
  const pins: Record<string, readonly string[]> = {}
  const input: ReaderInput = { boxes, plain: false, blocks: replica.blocks, names: run.names, pins, now: replica.environment.now(), known: replica.states, begin: how.begin ?? null, checkAll: replica.environment.offloading?.checkAll, meanwhile: replica.openAhead }
  const queried = new Set<string>()
  let ring = replica.ring
  let isListed = false
  for (;;) {
    const reader = new VaultReader(input)
    await reader.takeRecords()
    const pointer = how.pointer ?? null
    const anchors = [
      ...(root === null ? [] : [ipnsName(root.head)]),
      ...(pointer === null ? [] : [ipnsName(fromHex(pointer.anchor, 32))]),
      ...(ring === null ? [] : ring.said.anchors().map(key => ipnsName(fromHex(key))))
    ]
    const devices = ring === null ? [] : [...ring.said.members.values()].map(one => ipnsName(fromHex(one.sign)))
    const names = new Set([...anchors.flatMap(name => ledOver(reader, name)), ...devices])
    for (const name of devices) {
      if (reader.target(name)?.name) run.sayOnce('bad-record', 'the name of a device points to another name; that was not followed')
    }
    const news = [...names].filter(name => !queried.has(name))
    if (news.length > 0) {
      for (const name of news) queried.add(name)
      await run.ask(news)
      continue
    }
    const roots = [...names].flatMap(name => reader.target(name)?.cid ?? [])
    // Roots named by a name or a person are wanted; roots from lists only must first prove that they are of this vault.
    await run.fetch([...new Set([...roots, ...(how.begin ? [how.begin] : [])])])
    await run.fetchTops([...new Set(Object.values(pins).flat())])
    if (ring === null) {
      if (root === null && pointer !== null) {
        ring = await reader.ringOf(fromHex(pointer.vault, 16), fromHex(pointer.anchor, 32))
        continue
      }
      if (root === null) throw new MemoryError('none', 'this device is not a member of a vault yet', 'Open it with the wallet or the recovery phrase.')
      if (roots.length === 0 && !isListed) {
        isListed = true
        await list(run, pins, pinName(root.head))
        continue
      }
      ring = await reader.firstRing(root)
    }
    const before = ring.mark
    ring = await reader.growByNames(ring)
    if (ring.mark === before) ring = await reader.growByLists(ring)
    if (ring.mark !== before) continue
    if (ring.shut) throw new MemoryError('member', 'this device is not a member yet', 'Show its request to a device that has the wallet, then try again.')
    const heads = [...ring.said.members.values()].filter(one => reader.rootOfDevice(fromHex(one.sign)) !== null)
    const first = [...ring.said.members.values()].find(one => one.sign === ring?.said.first)
    if (heads.length === 0 && first?.anchor && pins[pinName(fromHex(first.anchor))] === undefined) {
      await list(run, pins, pinName(fromHex(first.anchor)))
      continue
    }
    await run.fetch(await reader.shown(ring))
    return { reader, ring }
  }
}

/** List the pins under a name, newest first. */
async function list(run: Run, pins: Record<string, readonly string[]>, name: string): Promise<void> {
  const found: string[] = []
  for (const provider of run.providers) {
    try {
      // An unreadable entry must not block the rest, and may be the wanted one.
      const listed = ((await provider.pins?.(name)) ?? []).map(one => unlessRefused(() => asVersion1(parseCid(one)).text))
      found.push(...listed.flatMap(one => one ?? []))
      if (listed.some(one => one == null)) throw new ProviderError(provider.name, false, `a part of the pin list of ${provider.name} cannot be read, so newer texts may be missing`)
    } catch (error) {
      run.failed(error)
    }
  }
  pins[name] = [...new Set(found)].slice(0, MOST_LISTED)
}
