/** A page that a test opens in a browser: it plays what its address asks for, and sends what came out to where it came from. */

import { secp256k1 } from '@noble/curves/secp256k1.js'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { fromHex, hex, join } from '../src/core/bytes.ts'
import { signingHash } from '../src/core/wallet.ts'
import * as ipfsmem from '../src/index.ts'
import { requestEntry } from '../src/open.ts'

type Asked = { readonly play: keyof typeof plays; readonly at: string; readonly token: string; readonly words: string; readonly code: string; readonly key: string; readonly n: number }

const message = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** A wallet as EIP-6963 announces one, over a raw key; `hedged` signs otherwise each time, as some hardware does. */
function announceWallet(key: string, hedged = false): void {
  const secret = fromHex(key)
  const address = `0x${hex(keccak_256(secp256k1.getPublicKey(secret, false).subarray(1)).subarray(12))}`
  const provider = {
    async request({ method, params = [] }: { method: string; params?: readonly unknown[] }): Promise<unknown> {
      if (method === 'eth_requestAccounts') return [address]
      if (method !== 'personal_sign') throw new Error(method)
      const text = new TextDecoder().decode(fromHex(String(params[0]).slice(2)))
      const [parity, ...rs] = secp256k1.sign(signingHash(text), secret, { prehash: false, format: 'recovered', extraEntropy: hedged })
      return `0x${hex(join(rs, [27 + (parity as number)]))}`
    }
  }
  const detail = { info: { rdns: 'org.example.wallet', name: 'Test wallet', icon: 'data:image/svg+xml,' }, provider }
  window.addEventListener('eip6963:requestProvider', () => window.dispatchEvent(new CustomEvent('eip6963:announceProvider', { detail })))
}

const wallet = async (): Promise<ipfsmem.EthereumProvider> => {
  const [found] = await ipfsmem.findWallets(window, 50)
  if (found === undefined) throw new Error('no wallet')
  return found.provider
}

const plays = {
  /** The wallet opens the memory in this browser, after words of no memory were tried, which writes and publishes. */
  async wallet({ at, token, key, words }: Asked): Promise<unknown> {
    const wrong = await ipfsmem.openMemory({ at: [{ at, token }], root: ipfsmem.keysOfWords(words), label: 'wrong', stay: true }).then(() => 'opened', message)
    const left = await ipfsmem.openDatabase('default')
    const kept = await ipfsmem.hasDevice(left)
    left.close()
    announceWallet(key)
    const root = await ipfsmem.keysOfWallet(await wallet(), { vault: 'default', twice: true })
    const memory = await ipfsmem.openMemory({ at: [{ at, token }], root, label: 'browser', stay: true })
    const before = memory.read('tone')?.body
    await memory.write('from_browser', 'Written in a browser.')
    const { root: published, notices } = await memory.sync()
    return { wrong, kept, before, published, notices: notices.map(one => one.text), persisted: await navigator.storage.persisted() }
  },
  /** A second look in the same profile: the keys stayed usable, and none can be read. */
  async again({ at, token }: Asked): Promise<unknown> {
    const memory = await ipfsmem.openMemory({ at: [{ at, token }] })
    const text = memory.read('from_browser')?.body
    const db = await ipfsmem.openDatabase('default')
    const kept = (await db.get('keys', 'staying unlocked')) as Record<string, CryptoKey>
    const exports = await Promise.all([kept.sign, kept.box, kept.rows].map(one => crypto.subtle.exportKey(one?.type === 'private' ? 'pkcs8' : 'raw', one as CryptoKey).then(() => true, () => false)))
    const clear = (await db.getAll('changes')).concat((await db.getAll('heads')).filter(one => one instanceof Uint8Array) as Uint8Array[])
    const seen = clear.some(row => new TextDecoder().decode(row).includes('from_browser'))
    await ipfsmem.lock(db)
    memory.close()
    const locked = await ipfsmem.openMemory({ at: [{ at, token }] }).then(() => '', error => (error as ipfsmem.MemoryError).kind)
    return { text, exports, seen, locked, local: Object.keys(localStorage).length }
  },
  /** While the words open it for the first time, somebody asks here to be let in too; whether the words open it again, and whether it locks where nothing opens it. */
  async asked({ at, token, words }: Asked): Promise<unknown> {
    const [root, name, db] = [ipfsmem.keysOfWords(words), 'asked', await ipfsmem.openDatabase('asked')]
    const opening = ipfsmem.openMemory({ name, at: [{ at, token }], root })
    while (!(await ipfsmem.hasDevice(db))) await new Promise(done => setTimeout(done, 1))
    const asking = requestEntry({ name, pointer: { vault: '0'.repeat(32), anchor: '0'.repeat(64) } }).then(() => 'asked', message)
    const memory = await opening
    const said = await asking
    memory.close()
    const again = await ipfsmem.openMemory({ name, at: [{ at, token }], root }).then(one => (one.close(), 'opened'), message)
    await requestEntry({ name: 'guest', pointer: { vault: '0'.repeat(32), anchor: '0'.repeat(64) } })
    const guest = await ipfsmem.openDatabase('guest')
    const locked = await ipfsmem.lock(guest).then(() => 'locked', message)
    return { said, again, locked, kept: (await guest.getAllKeys('keys')).includes('staying unlocked') }
  },
  /** A wallet that signs otherwise each time makes no keys. */
  async hedged({ key }: Asked): Promise<unknown> {
    announceWallet(key, true)
    return ipfsmem.keysOfWallet(await wallet(), { vault: 'default', twice: true }).then(() => 'taken', message)
  },
  /** Many writes of this tab, while another one does the same; in a worker. */
  async tabs({ at, token, words, n }: Asked): Promise<unknown> {
    const root = ipfsmem.keysOfWords(words)
    const memory = await ipfsmem.openMemory({ name: 'tabs', at: [{ at, token }], root, stay: true })
    const frame = document.createElement('iframe')
    const other = new Promise<void>(done => addEventListener('message', event => event.data === 'done' && done()))
    frame.src = `${location.pathname}?${new URLSearchParams({ ...(Object.fromEntries(new URLSearchParams(location.search)) as object), play: 'tab' })}`
    document.body.append(frame)
    let heard = 0
    memory.subscribe(() => void heard++)
    for (let i = 0; i < n; i++) await memory.write(`one_${i}`, `Text ${i}`)
    await other
    await memory.sync()
    const keys = memory.list().map(one => one.key)
    return { ones: keys.filter(one => one.startsWith('one_')).length, twos: keys.filter(one => one.startsWith('two_')).length, heard }
  },
  /** The other tab of that. */
  async tab({ at, token, n }: Asked): Promise<unknown> {
    const memory = await ipfsmem.openMemory({ name: 'tabs', at: [{ at, token }] })
    for (let i = 0; i < n; i++) await memory.write(`two_${i}`, `Text ${i}`)
    parent.postMessage('done', '*')
    return null
  },
  /** Write for as long as this tab lives, and say how many writes are done. */
  async forever({ at, token, words }: Asked): Promise<unknown> {
    const memory = await ipfsmem.openMemory({ name: 'crash', at: [{ at, token }], root: ipfsmem.keysOfWords(words), stay: true })
    for (let i = 0; ; i++) {
      await memory.write(`one_${i}`, `Text ${i}`)
      Object.assign(globalThis, { done: i + 1 })
    }
  },
  /** Writes of a tab by its own name into what another tab keeps; the memory stays open as `memory`. */
  async writes({ at, token, words, n, key }: Asked): Promise<unknown> {
    const root = words ? { root: ipfsmem.keysOfWords(words), stay: true } : {}
    const memory = await ipfsmem.openMemory({ name: 'crash', at: [{ at, token }], ...root })
    for (let i = 0; i < n; i++) await memory.write(`${key}_${i}`, `Text ${i}`)
    Object.assign(globalThis, { memory, message, done: n })
    return null
  },
  /** A text written by the browser that stays unlocked, and nothing sent yet. */
  async edits({ at, token, key, words }: Asked): Promise<unknown> {
    const memory = await ipfsmem.openMemory({ at: [{ at, token }], root: key === '' ? null : ipfsmem.keysOfWords(words), stay: true, label: 'browser' })
    return (await memory.write('tone', given.text ?? '')).merged
  },
  /** One sync of it, and what is shown then. */
  async syncs({ at, token }: Asked): Promise<unknown> {
    const memory = await ipfsmem.openMemory({ at: [{ at, token }] })
    const said = await memory.sync().then(({ root }) => ({ root, said: '' }), error => ({ root: null, said: message(error) }))
    const shown = memory.read('tone')
    return { ...said, body: shown?.body, merged: shown?.merged, device: memory.device.id, labels: memory.members().map(one => one.label) }
  },
  /** The lines of the README, as an app has them in its page. */
  async embedded({ code, key }: Asked): Promise<unknown> {
    announceWallet(key)
    const lines = URL.createObjectURL(new Blob([code.replace('{library}', `${location.origin}/lib/ipfsmem.js`)], { type: 'text/javascript' }))
    const { memory, prompt } = (await import(/* @vite-ignore */ lines)) as { memory: ipfsmem.Memory; prompt: string }
    await memory.write('embedded', 'Written by an app.')
    return { prompt, root: (await memory.sync()).root }
  },
  /** The memory in a worker, asked by the page. */
  async worker({ at, token, words }: Asked): Promise<unknown> {
    const worker = new Worker(new URL('./page_worker.js', location.href), { type: 'module' })
    const memory = await ipfsmem.openRemote(worker, { name: 'worker', at: [{ at, token }], root: ipfsmem.keysOfWords(words), stay: true })
    const changed = new Promise<number>(done => memory.subscribe(({ revision }) => done(revision)))
    await memory.write('from_worker', 'Written in a worker.', { type: 'project' })
    const listed = await memory.list({ type: 'project' })
    const failed = await memory.write('No Key', 'x').then(() => null, error => [(error as ipfsmem.MemoryError).kind, message(error)])
    const { root } = await memory.sync()
    return { listed: listed.map(one => one.key), failed, root, told: (await changed) > 0 }
  }
}

const given = Object.fromEntries(new URLSearchParams(location.search))
const asked = { ...given, n: Number(given.n ?? 0) } as unknown as Asked
plays[asked.play](asked)
  .then(answer => ({ answer }), (error: unknown) => ({ error: error instanceof Error ? `${error.message} ${error.stack}` : String(error) }))
  .then(said => (asked.play === 'tab' && !('error' in said) ? null : fetch('/said', { method: 'POST', body: JSON.stringify(said) })))
