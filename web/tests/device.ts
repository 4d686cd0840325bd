/**
 * A device in Node that a test drives: one JSON command a line comes in, one JSON answer a line goes out.
 *
 * `{"do":"open","url","token","words"|"wallet"|"none","label"}`, then any method of `Memory` by its name with its arguments.
 */

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { keyRequest, keysOfSecret, keysOfWords, newRecoveryWords, type RootKeys, signatureBytes, signedTwice } from '../src/core/wallet.ts'
import { defaultEnvironment, volatileDevice } from '../src/device/device.ts'
import { MemoryError } from '../src/device/errors.ts'
import { Memory } from '../src/memory.ts'
import { providerOf } from '../src/open.ts'
import { VolatileStorage } from '../src/store/device_storage.ts'
import { smallName } from '../src/core/small_objects.ts'
import { folderProvider } from '../src/sync/folder.ts'
import { Http } from '../src/sync/http.ts'
import type { SmallArea } from '../src/sync/provider.ts'
import type { Pointer } from '../src/sync/syncing.ts'

type Command = { readonly do: string; readonly [name: string]: unknown }

/** The clock of these devices, which a test may put on. */
let ahead = 0
const world = { ...defaultEnvironment, now: () => defaultEnvironment.now() + ahead }

async function rootOf(command: Command): Promise<RootKeys | null> {
  if (typeof command.words === 'string') return keysOfWords(command.words)
  if (typeof command.address !== 'string') return null
  const { address, vault, first, second } = command as unknown as Record<'address' | 'vault' | 'first' | 'second', string>
  const rs = signedTwice(address, keyRequest(address, vault, 1), signatureBytes(first), signatureBytes(second))
  return keysOfSecret({ secret: rs, address, vault, keyNumber: 1 })
}

const filesBelow = (folder: string): Map<string, Uint8Array> =>
  new Map((readdirSync(folder, { recursive: true }) as string[]).filter(path => statSync(join(folder, path)).isFile()).map(path => [path, new Uint8Array(readFileSync(join(folder, path)))]))

const opened = new Map<string, Memory>()
/** How often each said that something changed. */
const changes = new Map<string, number>()
const storages = new Map<string, { storage: VolatileStorage; device: Awaited<ReturnType<typeof volatileDevice>> }>()

async function answer(command: Command): Promise<unknown> {
  const name = String(command.as ?? 'device')
  if (command.do === 'open') {
    const at = (command.at as string[] | undefined) ?? [`peer:${command.url}`]
    // Pinata's hosts, which its provider asks by their names, are this address.
    const pinata: typeof fetch = (url, asked) => fetch(String(url).replace(/^https:\/\/\w+\.pinata\.cloud/, String(command.pinata)), asked)
    const providers = at.map(one => one.startsWith('folder:') ? folderProvider(one, filesBelow(one.slice('folder:'.length))) : providerOf({ at: one, token: command.token === undefined ? null : String(command.token) }, one === 'pinata' ? pinata : fetch))
    const on = String(command.on ?? name)
    const kept = storages.get(on) ?? { storage: new VolatileStorage(), device: await volatileDevice(world, String(command.label ?? name)) }
    storages.set(on, kept)
    const pointer = (command.pointer as Pointer | undefined) ?? null
    // What this device shows to be let in, before it is.
    if (command.request === true && pointer !== null) return Memory.request(kept.device, pointer)
    if (command.create === true) {
      const recovery = command.recovery === true ? newRecoveryWords(defaultEnvironment.chance) : null
      opened.set(name, await Memory.create({ ...kept, providers, environment: world, root: await rootOf(command), recovery: recovery?.keys ?? null }))
      return { ...opened.get(name)?.device, words: recovery?.words ?? null }
    }
    const root = await rootOf(command)
    let [early, written]: [string[], Promise<unknown>] = [[], Promise.resolve()]
    // What can be read before it is kept, and a text that is written then.
    const shown = async (memory: Memory): Promise<void> => {
      early = memory.list().map(one => one.key)
      written = memory.write('tone', 'Be quick.')
    }
    opened.set(name, await Memory.load({ ...kept, providers, environment: world, pointer, root, ...(command.early === true ? { shown } : {}) }))
    await written
    if (command.early === true) return { early }
    opened.get(name)?.subscribe(() => void changes.set(name, (changes.get(name) ?? 0) + 1))
    return opened.get(name)?.device
  }
  if (command.do === 'admit') return (opened.get(name) as Memory).admit(String(command.text), (await rootOf(command)) as RootKeys)
  if (command.do === 'changes') return changes.get(name) ?? 0
  if (command.do === 'get') {
    const http = new Http('server', fetch, {}, '', Number(command.ms))
    return (await http.bytes(await http.ask(String(command.url), { what: 'read' }))).length
  }
  if (command.do === 'small') {
    const area = providerOf({ at: String(command.at), token: String(command.token) }, fetch).small as SmallArea
    const names: string[] = []
    for (const [box, label, text] of (command.put ?? []) as [string, string, string][]) {
      const data = new TextEncoder().encode(text)
      names.push(smallName(box, label, data))
      await area.put(names.at(-1) as string, data)
    }
    await area.remove((command.remove ?? []) as string[])
    const listed = await area.list(command.boxes as string[])
    const got = await area.get([...listed.keys(), ...((command.names ?? []) as string[])])
    return { listed: Object.fromEntries(listed), got: Object.fromEntries([...got].map(([name, data]) => [name, new TextDecoder().decode(data)])), names }
  }
  if (command.do === 'later') return (ahead += Number(command.ms))
  const memory = opened.get(name) as Memory
  if (command.do === 'use') return memory.use([providerOf({ at: `peer:${command.url}`, token: String(command.token) }, fetch)])
  if (command.do === 'outbox') {
    const made = await memory.outbox()
    return made && { root: made.root, car: Buffer.from(made.car).toString('base64') }
  }
  const method = memory[command.do as keyof Memory] as (...given: unknown[]) => unknown
  return method.apply(memory, (command.with as unknown[] | undefined) ?? [])
}

for await (const line of createInterface({ input: process.stdin })) {
  try {
    console.log(JSON.stringify({ answer: (await answer(JSON.parse(line) as Command)) ?? null }))
  } catch (error) {
    const it = error as Error & { kind?: string; hint?: string }
    const isOurs = error instanceof MemoryError || it.name === 'Refused'
    console.log(JSON.stringify({ error: it.message, kind: it.kind ?? it.name, hint: it.hint ?? '', ...(isOurs ? {} : { stack: it.stack }) }))
  }
}
