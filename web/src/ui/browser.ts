/** The state of this browser: its providers with their tokens, its passkeys, devices that it adds, its lock. */

import { html, nothing, type PropertyValues, type TemplateResult } from 'lit'
import type { RootKeys } from '../core/wallet.ts'
import type { Spec } from '../open.ts'
import { fromVault } from './local_vault.ts'
import { placeRows, placesOf, type Typed, typedOf } from './places_form.ts'
import { qrCode } from './qr.ts'
import { View } from './view.ts'
import './unlock.ts'

/** Capabilities of this browser for its vault. */
export type Own = {
  readonly places: () => Promise<readonly Spec[]>
  readonly setPlaces: (places: readonly Spec[]) => Promise<void>
  readonly lock: () => Promise<void>
  /** A link with which another browser finds this vault and requests to be added. */
  readonly link: () => Promise<string>
  readonly readRequest: (request: string) => Promise<{ readonly label: string; readonly words: readonly string[] }>
  readonly admit: (request: string, root: RootKeys) => Promise<string>
  /**
   * Check that these keys open this browser's own; returns a function that creates a passkey, to be called from a click. Null: no passkeys
   * here.
   */
  readonly passkey: ((root: RootKeys) => Promise<() => Promise<void>>) | null
  readonly passkeys: () => Promise<readonly string[]>
  readonly dropPasskey: (id: string) => Promise<void>
}

export class BrowserView extends View {
  static override properties = { ...View.properties, own: { attribute: false }, typed: { state: true }, said: { state: true }, link: { state: true }, request: { state: true }, guest: { state: true }, passkeys: { state: true }, proving: { state: true }, make: { state: true } }
  declare own: Own
  declare typed: readonly Typed[] | null
  declare said: string
  declare link: string
  declare request: string
  /** The device whose words are shown, and its request: the compared one is added. */
  declare guest: { readonly request: string; readonly label: string; readonly words: readonly string[] } | null
  declare passkeys: readonly string[]
  declare proving: boolean
  declare make: (() => Promise<void>) | null

  constructor() {
    super()
    Object.assign(this, { typed: null, said: '', link: '', request: '', guest: null, passkeys: [], proving: false, make: null })
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has('own') && this.typed === null) void this.#load()
  }

  async #load(): Promise<void> {
    const found = await this.attempt(() => fromVault(async () => ({ typed: typedOf(await this.own.places()), passkeys: await this.own.passkeys() })))
    if (found !== undefined) Object.assign(this, found)
  }

  async #save(event: Event): Promise<void> {
    event.preventDefault()
    this.said = ''
    const done = await this.attempt(async () => { await fromVault(() => this.own.setPlaces(placesOf(this.typed ?? []))); return true }, true)
    if (!done) return
    this.said = (await this.attempt(() => this.place.client.sync(), true)) ?? ''
    this.link = ''
  }

  async #read(text: string): Promise<void> {
    const request = text.trim()
    Object.assign(this, { request, guest: null })
    if (request === '') return
    const said = await this.attempt(() => fromVault(() => this.own.readRequest(request)), true)
    if (said !== undefined && this.request === request) this.guest = { request, ...said }
  }

  async #admit(request: string, root: RootKeys): Promise<void> {
    this.said = await this.own.admit(request, root)
    Object.assign(this, { request: '', guest: null })
  }

  async #makePasskey(): Promise<void> {
    const { make } = this
    const done = await this.attempt(async () => { await fromVault(() => make!()); return true }, true)
    if (!done) return
    Object.assign(this, { make: null, proving: false })
    await this.#load()
  }

  async #drop(id: string): Promise<void> {
    await this.attempt(() => this.own.dropPasskey(id), true)
    await this.#load()
  }

  #passkey(): TemplateResult | typeof nothing {
    if (this.own.passkey === null) return nothing
    return html`<h3>Passkeys</h3><p class="faint">A passkey opens the vault in this browser instead of the wallet or the recovery phrase. No other device knows it.</p>
      <ul class="things">${this.passkeys.map(id => html`<li class="line"><code>${id.slice(0, 12)}…</code><button class="quiet" @click=${() => void this.#drop(id)}>Remove</button></li>`)}</ul>
      ${this.make !== null ? html`<button class="main" @click=${() => void this.#makePasskey()} ?disabled=${this.busy}>Create the passkey</button>`
      : this.proving ? html`<p>First prove that this vault is yours.</p><unlock-form .take=${async (root: RootKeys) => { this.make = await this.own.passkey!(root) }}></unlock-form>`
      : html`<button @click=${() => (this.proving = true)}>Add a passkey</button>`}`
  }

  #another(): TemplateResult {
    const { guest } = this
    return html`<h3>Another device</h3>
      ${this.link === '' ? html`<div class="line"><span class="faint">A phone or another browser, with the wallet or without.</span><button @click=${async () => { this.link = (await this.attempt(() => fromVault(() => this.own.link()), true)) ?? '' }}>Show the link to this vault</button></div>`
      : html`<p class="faint">Open this there. It contains public keys and providers, and no secret.</p>${qrCode(this.link, 'A link to this vault')}<label class="way">As text<textarea class="link" readonly rows="3" .value=${this.link}></textarea></label>`}
      <label class="way">The request it shows, to add it without the wallet<textarea name="request" rows="3" .value=${this.request} placeholder="ipfsmem:request:…" @input=${(event: Event) => void this.#read((event.target as HTMLTextAreaElement).value)} autocomplete="off" spellcheck="false"></textarea></label>
      <qr-scanner .read=${(text: string) => void this.#read(text)}></qr-scanner>
      ${guest === null ? nothing : html`<div class="clash"><h3 dir="auto">${guest.label}</h3><p>Add it only if it shows the same six words:</p><p class="six">${guest.words.join(' ')}</p>
        <unlock-form .take=${(root: RootKeys) => this.#admit(guest.request, root)}></unlock-form></div>`}`
  }

  protected override render(): TemplateResult {
    return html`<section class="page" aria-busy=${this.busy}><h2>This browser</h2>${this.problem()}<p class="faint" role="status">${this.said}</p>
      <h3>Providers</h3><p class="faint">Providers where your vault is stored.</p>
      ${this.typed === null ? nothing : html`<form @submit=${this.#save}>${placeRows(this.typed, next => (this.typed = next(this.typed ?? [])))}<div class="actions end"><button class="main" ?disabled=${this.busy}>Use these</button></div></form>`}
      ${this.#passkey()}${this.#another()}
      <h3>Lock</h3><div class="line"><span class="faint">The shown texts are removed; the wallet, the recovery phrase or a passkey opens the vault again.</span><button @click=${() => void this.attempt(() => fromVault(() => this.own.lock()), true)}>Lock now</button></div>
    </section>`
  }
}
customElements.define('browser-view', BrowserView)
