/** The page without any server: the memory is in this browser, found by its wallet, words or passkey, and synced with the places that it was told. */

import { html } from 'lit'
import type { OpenHow } from '../open.ts'
import { hasDevice, lock, openersOf } from '../store/browser_keys.ts'
import { isKept, openDatabase } from '../store/idb.ts'
import { passkeyIds } from '../wallet/passkey.ts'
import { openRemote, type RemoteMemory } from '../worker/remote.ts'
import workerUrl from '../worker/worker.ts?worker&url'
import { MemoryApp } from './app.ts'
import './browser.ts'
import { MemoryDoor, type Typed } from './door.ts'
import { LocalClient } from './local_client.ts'
import { ownScript } from './own_scripts.ts'

const NAME = 'default'
/** Milliseconds between two looks at what others wrote, and from a write to its publishing. */
const LOOK = 60_000
const REST = 1500

async function remote(how: OpenHow): Promise<RemoteMemory> {
  const worker = new Worker(ownScript(workerUrl) as unknown as URL, { type: 'module' })
  try {
    return await openRemote(worker, { name: NAME, ...how })
  } catch (error) {
    worker.terminate()
    throw error
  }
}

/** The places that whoever put this page here has named. */
function named(): Typed[] {
  const said = document.querySelector<HTMLMetaElement>('meta[name=ipfsmem-places]')?.content ?? ''
  const places = said.split(/\s+/).filter(Boolean).map(at => ({ at, token: '' }))
  return places.length > 0 ? places : [{ at: '', token: '' }]
}

/** Sync after each write, once a minute while somebody looks, and when the network is back; one at a time. */
function syncing(client: LocalClient, memory: RemoteMemory): void {
  let waiting = 0
  const soon = (rest: number): void => {
    clearTimeout(waiting)
    waiting = window.setTimeout(() => void client.sync().catch(() => undefined), rest)
  }
  memory.subscribe(() => void memory.status().then(({ unpublished }) => (unpublished ? soon(REST) : undefined), () => undefined))
  window.addEventListener('online', () => soon(0))
  setInterval(() => (document.visibilityState === 'visible' ? soon(0) : undefined), LOOK)
  soon(0)
}

/** Nothing of it stays usable here, in no tab. */
async function locked(): Promise<void> {
  const db = await openDatabase(NAME)
  await lock(db)
  db.close()
  bell.postMessage('locked')
  location.reload()
}

/** Rings in all tabs of this page. */
const bell = new BroadcastChannel('ipfsmem/page')
bell.onmessage = () => location.reload()

function show(memory: RemoteMemory): void {
  const client = new LocalClient(memory, { name: memory.device.label, right: 'write', now: () => Date.now(), persisted: () => navigator.storage.persisted() })
  const app = new MemoryApp()
  app.client = client
  const own = { places: () => memory.keptPlaces(), setPlaces: (places: Parameters<RemoteMemory['setPlaces']>[0]) => memory.setPlaces(places), lock: locked }
  app.extras = [{ name: 'browser', words: 'This browser', show: place => html`<browser-view .place=${place} .own=${own}></browser-view>` }]
  document.querySelector('memory-door')?.remove()
  document.body.prepend(app)
  syncing(client, memory)
  void navigator.storage.persist()
}

async function begin(): Promise<void> {
  const db = await openDatabase(NAME)
  const [has, kept, openers] = [await hasDevice(db), await isKept(db), await openersOf(db)]
  db.close()
  if (has && kept) {
    try {
      return show(await remote({ at: null }))
    } catch (error) {
      if ((error as { kind?: string }).kind !== 'locked') console.warn(error)
    }
  }
  const door = new MemoryDoor()
  Object.assign(door, { isNew: !kept, passkeys: passkeyIds(openers), typed: named(), enter: async (how: OpenHow) => show(await remote(how)) })
  document.body.prepend(door)
}

void begin()
// Without one (no https, a private window) the page works as well, and needs the network to open.
void navigator.serviceWorker?.register(ownScript(new URL('service_worker.js', document.baseURI).href) as string, { type: 'classic' }).catch(() => undefined)
