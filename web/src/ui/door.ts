/** The form before the vault in this browser is open: how to open it, where to find it, and whether it stays open. */

import { html, LitElement, nothing, type TemplateResult } from 'lit'
import type { RootKeys } from '../core/wallet.ts'
import type { OpenHow } from '../open.ts'
import type { Whereabouts } from '../pointer.ts'
import { usePasskey } from '../wallet/passkey.ts'
import { Refusal } from './client.ts'
import type { Request } from './joining.ts'
import { fromVault } from './local_vault.ts'
import { placeRows, placesOf, type Typed } from './places_form.ts'
import { sentence } from './view.ts'
import './joining.ts'
import './unlock.ts'

export class MemoryDoor extends LitElement {
  static override properties = { enter: { attribute: false }, ask: { attribute: false }, forget: { attribute: false }, sure: { state: true }, pointer: { attribute: false }, isNew: { attribute: false }, passkeys: { attribute: false }, typed: { state: true }, stay: { state: true }, failed: { state: true } }
  /** Opens the vault. Raises errors for the person. */
  declare enter: (how: OpenHow) => Promise<void>
  /** Makes the keys of this browser, for a device that adds it. */
  declare ask: (where: Whereabouts, label: string) => Promise<Request>
  /** The pointer from another device; '' without one. */
  declare pointer: string
  /** Deletes this browser's data. */
  declare forget: () => Promise<void>
  /** Whether this browser has no vault yet, and needs its providers. */
  declare isNew: boolean
  /** Passkeys that open the stored vault. */
  declare passkeys: readonly string[]
  declare typed: readonly Typed[]
  declare stay: boolean
  declare sure: boolean
  declare failed: Refusal | null

  constructor() {
    super()
    Object.assign(this, { pointer: '', sure: false, isNew: true, passkeys: [], typed: [], stay: false, failed: null })
  }

  protected override createRenderRoot(): HTMLElement {
    return this
  }

  async #take(root: RootKeys): Promise<void> {
    const at = this.isNew ? placesOf(this.typed) : null
    if (at !== null && at.length === 0) throw new Refusal('usage', 'no provider is named for this vault', 'For instance routing:https://… with gateway:https://…, or peer:https://…', 400)
    await this.enter({ at, keepAt: true, root, stay: this.stay, label: label() })
  }

  async #passkey(): Promise<void> {
    try {
      await fromVault(async () => {
        await this.enter({ at: null, passkey: await usePasskey(this.passkeys, size => crypto.getRandomValues(new Uint8Array(size))), stay: this.stay })
      })
    } catch (error) {
      this.failed = error as Refusal
    }
  }

  protected override render(): TemplateResult {
    return html`<main class="door"><h1>Open your vault</h1>
      <p class="faint">It is downloaded encrypted, and opened in this browser. No server can read it.</p>
      ${this.failed === null ? nothing : html`<div class="problem" role="alert"><strong>${sentence(this.failed.message)}</strong> ${this.failed.hint}</div>`}
      ${this.passkeys.length ? html`<button class="main way" @click=${this.#passkey}>Open with the passkey</button>` : nothing}
      <unlock-form .take=${(root: RootKeys) => this.#take(root)} .twice=${this.isNew}></unlock-form>
      ${this.isNew ? html`<fieldset class="way"><legend>Where it is</legend>
        ${placeRows(this.typed, next => (this.typed = next(this.typed)))}</fieldset>` : nothing}
      <label class="way check"><input type="checkbox" .checked=${this.stay} @change=${(event: Event) => (this.stay = (event.target as HTMLInputElement).checked)}>
        <span>Stay open in this browser. <span class="faint">Anyone who copies its profile from this disk can then read the vault.</span></span></label>
      ${this.isNew ? html`<details class="way" ?open=${this.pointer !== ''}><summary>Without the wallet: be added by a device that has it</summary>
        <joining-form .pointer=${this.pointer} .label=${label()} .ask=${this.ask} .enter=${this.enter}></joining-form></details>`
      : html`<details class="way"><summary>Nothing opens it any more</summary><p class="faint">The data in this browser is deleted, and its unpublished texts are lost. The vault itself stays at its providers, and can be opened here again.</p>
        <button class=${this.sure ? 'danger' : ''} @click=${() => (this.sure ? void this.forget() : (this.sure = true))}>${this.sure ? 'Yes, delete it here' : 'Delete it in this browser'}</button></details>`}</main>`
  }
}
customElements.define('memory-door', MemoryDoor)

/** The label of this browser in the list of members. */
function label(): string {
  const { userAgent } = navigator
  const name = ['Firefox', 'Edg', 'Chrome', 'Safari'].find(one => userAgent.includes(one)) ?? ''
  return `${name === 'Edg' ? 'Edge' : name || 'a'} browser`
}
