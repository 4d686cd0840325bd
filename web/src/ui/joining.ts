/**
 * Adding a browser without the wallet: it shows its public keys and six words to a device that has the wallet, and opens once it is added.
 */

import { html, LitElement, nothing, type TemplateResult } from 'lit'
import type { OpenHow } from '../open.ts'
import { pointerOf, type Whereabouts } from '../pointer.ts'
import { Refusal } from './client.ts'
import { fromVault } from './local_vault.ts'
import { qrCode } from './qr.ts'
import { sentence } from './view.ts'

export type Request = { readonly text: string; readonly words: readonly string[] }

export class JoiningForm extends LitElement {
  static override properties = { pointer: { attribute: false }, label: { attribute: false }, ask: { attribute: false }, enter: { attribute: false }, where: { state: true }, request: { state: true }, failed: { state: true }, busy: { state: true } }
  /** The pointer from another device; empty without one. */
  declare pointer: string
  declare label: string
  /** Makes the keys of this browser. */
  declare ask: (where: Whereabouts, label: string) => Promise<Request>
  declare enter: (how: OpenHow) => Promise<void>
  declare where: Whereabouts | null
  declare request: Request | null
  declare failed: Refusal | null
  declare busy: boolean

  constructor() {
    super()
    Object.assign(this, { pointer: '', label: '', where: null, request: null, failed: null, busy: false })
  }

  protected override createRenderRoot(): HTMLElement {
    return this
  }

  async #attempt(work: () => Promise<void>): Promise<void> {
    this.busy = true
    this.failed = null
    try {
      await fromVault(work)
    } catch (error) {
      this.failed = error as Refusal
    } finally {
      this.busy = false
    }
  }

  #begin(event: Event): void {
    event.preventDefault()
    const typed = (name: string): string => this.querySelector<HTMLInputElement>(`[name=${name}]`)?.value.trim() ?? ''
    void this.#attempt(async () => {
      const where = pointerOf(typed('pointer'))
      this.request = await this.ask(where, typed('label') || this.label)
      this.where = where
    })
  }

  #open(): void {
    const { vault, anchor, at } = this.where!
    void this.#attempt(() => this.enter({ at: at.map(one => ({ at: one, token: null })), keepAt: true, pointer: { vault, anchor }, stay: true }))
  }

  protected override render(): TemplateResult {
    return html`${this.failed === null ? nothing : html`<div class="problem" role="alert"><strong>${sentence(this.failed.message)}</strong> ${this.failed.hint}</div>`}
      ${this.request === null ? html`<form @submit=${this.#begin}>
        <label>Where it is<textarea name="pointer" rows="3" .value=${this.pointer} placeholder="ipfsmem:memory:…" autocomplete="off" spellcheck="false" required></textarea></label>
        <label>Name of this browser<input name="label" .value=${this.label} autocomplete="off"></label>
        <p class="faint">Its keys are created and stay here, so it stays unlocked: anyone who copies this browser’s profile can read the vault.</p>
        <div class="actions end"><button class="main" ?disabled=${this.busy}>Request access</button></div></form>`
      : html`<p>Show this to the device that has the wallet, under <strong>This browser</strong>. Both show the same six words:</p>
        <p class="six">${this.request.words.join(' ')}</p>
        ${qrCode(this.request.text, 'The request of this browser')}
        <label>Or as text<textarea class="request" readonly rows="4" .value=${this.request.text}></textarea></label>
        <div class="actions end"><button class="main" ?disabled=${this.busy} @click=${this.#open}>I was added: open</button></div>`}`
  }
}
customElements.define('joining-form', JoiningForm)
