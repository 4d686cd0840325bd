/**
 * Wallets in this browser (EIP-1193, EIP-6963 and the older injected object), and the one text that they sign.
 *
 * The address is always recovered from the signature before a key is derived (FORMAT.md 2.2), whatever the wallet answers.
 */

import { hex, Refused, utf8 } from '../core/bytes.ts'
import { acceptedSignature, keyRequest, keysOfSecret, type RootKeys, signatureBytes, signedTwice } from '../core/wallet.ts'
import { MemoryError } from '../device/errors.ts'

/** The interface of a wallet in EIP-1193. */
export type EthereumProvider = { request(call: { method: string; params?: readonly unknown[] }): Promise<unknown> }

export type FoundWallet = {
  /** The reverse domain of the wallet, `legacy` for an injected object that does not announce itself. */
  readonly id: string
  readonly name: string
  /** A data URL; never another one, which would send a request. */
  readonly icon: string | null
  readonly provider: EthereumProvider
}

type Announced = { readonly info: { readonly rdns: string; readonly name: string; readonly icon: string }; readonly provider: EthereumProvider }

/** Milliseconds for wallets to announce themselves: they answer at once, but extensions may load late. */
const ANNOUNCE_MS = 300

/** Find the wallets in this page. */
export async function findWallets(page: Window & { readonly ethereum?: EthereumProvider }, waitMs = ANNOUNCE_MS): Promise<FoundWallet[]> {
  const found = new Map<string, FoundWallet>()
  const heard = (event: Event): void => {
    const { info, provider } = (event as CustomEvent<Announced>).detail
    if (typeof info?.rdns !== 'string' || typeof info.name !== 'string' || typeof provider?.request !== 'function') return
    const icon = typeof info.icon === 'string' && info.icon.startsWith('data:image/') ? info.icon : null
    found.set(info.rdns, { id: info.rdns, name: info.name.slice(0, 64), icon, provider })
  }
  page.addEventListener('eip6963:announceProvider', heard)
  page.dispatchEvent(new Event('eip6963:requestProvider'))
  await new Promise(resolve => setTimeout(resolve, waitMs))
  page.removeEventListener('eip6963:announceProvider', heard)
  const { ethereum } = page
  const isKnown = [...found.values()].some(one => one.provider === ethereum)
  if (typeof ethereum?.request === 'function' && !isKnown) found.set('legacy', { id: 'legacy', name: 'Browser wallet', icon: null, provider: ethereum })
  return [...found.values()]
}

/** Send a request to a wallet; 4001 is the person's refusal. */
async function ask<T>(provider: EthereumProvider, method: string, params: readonly unknown[] = []): Promise<T> {
  try {
    return (await provider.request({ method, params })) as T
  } catch (error) {
    const { code, message } = error as { code?: unknown; message?: unknown }
    if (code === 4001) throw new MemoryError('usage', 'the wallet refused the request', 'Nothing was created or changed. Try again when you are ready.')
    throw new MemoryError('usage', `the wallet could not do it: ${typeof message === 'string' ? message.slice(0, 200) : 'it did not say why'}`)
  }
}

/** Return the account that a wallet offers, 40 lower-case hex digits. */
export async function accountOf(provider: EthereumProvider): Promise<string> {
  const accounts = await ask<unknown>(provider, 'eth_requestAccounts')
  const first: unknown = Array.isArray(accounts) ? accounts[0] : null
  if (typeof first !== 'string' || !/^0x[0-9a-fA-F]{40}$/.test(first)) throw new MemoryError('usage', 'the wallet names no account', 'Unlock it and choose one.')
  return first.slice(2).toLowerCase()
}

export type WalletAsk = {
  readonly vault: string
  readonly keyNumber?: number
  readonly passphrase?: string | null
  /** To create a vault, or add this wallet to one, it signs twice, and both signatures must agree. */
  readonly twice?: boolean
  readonly progress?: (share: number) => void
}

/** Return the keys of a wallet for a vault. Refused if its signatures differ, or another account signed. */
export async function keysOfWallet(provider: EthereumProvider, how: WalletAsk): Promise<RootKeys> {
  const { vault, keyNumber = 1, passphrase = null, twice = false } = how
  const address = await accountOf(provider)
  const text = keyRequest(address, vault, keyNumber)
  const sign = async (): Promise<Uint8Array> => signatureBytes(await ask<string>(provider, 'personal_sign', [`0x${hex(utf8(text))}`, `0x${address}`]))
  try {
    const first = await sign()
    const secret = twice ? signedTwice(address, text, first, await sign()) : acceptedSignature(address, text, first)
    first.fill(0)
    const source = { secret, address, vault, keyNumber, passphrase, ...(how.progress ? { progress: how.progress } : {}) }
    const keys = await keysOfSecret(source)
    secret.fill(0)
    return keys
  } catch (error) {
    if (error instanceof Refused) throw new MemoryError('usage', error.message, 'Choose the account that created this vault, or use the recovery phrase.')
    throw error
  }
}
