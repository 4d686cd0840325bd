/** What is only in this browser: the places that it asks, with what lets it write there, its lock, and what waits to be published. */

import { html, nothing, type PropertyValues, type TemplateResult } from 'lit'
import type { Spec } from '../open.ts'
import type { Typed } from './door.ts'
import { asked } from './local_client.ts'
import { View } from './view.ts'

/** What this browser can do for its memory. */
export type Own = {
  readonly places: () => Promise<readonly Spec[]>
  readonly setPlaces: (places: readonly Spec[]) => Promise<void>
  readonly lock: () => Promise<void>
}

export class BrowserView extends View {
  static override properties = { ...View.properties, own: { attribute: false }, typed: { state: true }, said: { state: true } }
  declare own: Own
  declare typed: readonly Typed[] | null
  declare said: string

  constructor() {
    super()
    Object.assign(this, { typed: null, said: '' })
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has('own') && this.typed === null) void this.#load()
  }

  async #load(): Promise<void> {
    const places = await this.attempt(() => asked(() => this.own.places()))
    if (places !== undefined) this.typed = places.map(one => (typeof one === 'string' ? { at: one, token: '' } : { at: one.at, token: one.token ?? '' }))
  }

  async #save(event: Event): Promise<void> {
    event.preventDefault()
    this.said = ''
    const places = (this.typed ?? []).filter(one => one.at.trim() !== '').map(({ at, token }) => ({ at: at.trim(), token: token.trim() || null }))
    const done = await this.attempt(async () => { await asked(() => this.own.setPlaces(places)); return true })
    if (!done) return
    this.said = (await this.attempt(() => this.place.client.sync())) ?? ''
  }

  #type(at: number, part: Partial<Typed>): void {
    this.typed = (this.typed ?? []).map((one, i) => (i === at ? { ...one, ...part } : one))
  }

  protected override render(): TemplateResult {
    return html`<section class="page" aria-busy=${this.busy}><h2>This browser</h2>${this.problem()}
      <h3>Places</h3><p class="faint">Where your memory is looked for and kept. A token is in this browser alone, sealed under a key that no script reads; it is never a part of the memory.</p>
      ${this.typed === null ? nothing : html`<form @submit=${this.#save}>${this.typed.map((one, i) => html`<div class="place">
          <input aria-label="Place ${i + 1}" .value=${one.at} @input=${(event: Event) => this.#type(i, { at: (event.target as HTMLInputElement).value })} placeholder="peer:https://…" autocomplete="off" spellcheck="false">
          <input type="password" aria-label="What lets this browser write there" .value=${one.token} @input=${(event: Event) => this.#type(i, { token: (event.target as HTMLInputElement).value })} placeholder="token, to write there" autocomplete="off"></div>`)}
        <div class="actions"><button type="button" class="quiet" @click=${() => (this.typed = [...this.typed!, { at: '', token: '' }])}>Add a place</button><button class="main" ?disabled=${this.busy}>Use these</button></div></form>`}
      <p class="faint" role="status">${this.said}</p>
      <h3>Lock</h3><div class="line"><span class="faint">What is shown goes, and the wallet, the words or a passkey open it again.</span><button @click=${() => void this.own.lock()}>Lock now</button></div>
    </section>`
  }
}
customElements.define('browser-view', BrowserView)
