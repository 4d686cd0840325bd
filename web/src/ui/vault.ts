/** The vault as a whole: its state, members, providers, sync, export. */

import { html, nothing, type PropertyValues, type TemplateResult } from 'lit'
import { type Change, type Finding, type Member, type Place as Provider, Refusal, type State } from './client.ts'
import { many, moment, saved, sentence, View } from './view.ts'

type Format = 'zip' | 'car' | 'blob'

export class VaultView extends View {
  static override properties = { ...View.properties, state: { state: true }, members: { state: true }, providers: { state: true }, findings: { state: true }, step: { attribute: false }, said: { state: true }, syncing: { state: true }, lacks: { state: true } }
  declare state: State | null
  declare members: readonly Member[]
  declare providers: readonly Provider[]
  declare findings: readonly Finding[] | null
  declare step: Change | null
  declare said: string
  declare syncing: boolean
  /** What an export would lack, and its format; null without a question. */
  declare lacks: { readonly format: Format; readonly said: string } | null

  constructor() {
    super()
    Object.assign(this, { state: null, members: [], providers: [], findings: null, step: null, said: '', syncing: false, lacks: null })
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    if (changed.has('place') && changed.get('place')?.revision !== this.place.revision) void this.#load()
  }

  async #load(): Promise<void> {
    const { client } = this.place
    await this.attempt(async () => {
      const [state, members, providers] = await Promise.all([client.status(), client.members(), client.providers()])
      Object.assign(this, { state, members, providers })
    })
  }

  async #sync(): Promise<void> {
    this.syncing = true
    this.said = ''
    const said = await this.attempt(() => this.place.client.sync(), true)
    this.syncing = false
    if (said !== undefined) {
      this.said = sentence(said)
      await this.#load()
    }
  }

  /** Whether a sync runs, whoever started it. */
  get #runs(): boolean {
    return this.syncing || !!this.step?.doing
  }

  async #check(): Promise<void> {
    const found = await this.act(() => this.place.client.check())
    if (found !== undefined) this.findings = found
  }

  async #export(format: Format, partial = false): Promise<void> {
    this.lacks = null
    const blob = await this.act(async () => {
      try {
        return await this.place.client.export(format, '', partial)
      } catch (error) {
        if (!(error instanceof Refusal) || error.kind !== 'IncompleteError') throw error
        this.lacks = { format, said: sentence(error.message) }
        return undefined
      }
    })
    if (blob === undefined) return
    saved(blob, `${this.state?.vaultName ?? 'memory'}.${format === 'blob' ? 'json' : format}`)
  }

  #confirmation(format: Format, said: string): TemplateResult {
    return html`<div class="problem" role="alert"><strong dir="auto">${said}</strong>
      <button @click=${() => void this.#export(format, true)}>Save the rest</button> <button class="quiet" @click=${() => (this.lacks = null)}>Cancel</button></div>`
  }

  #findings(all: readonly Finding[]): TemplateResult {
    const list = (some: readonly Finding[]): TemplateResult => html`<ul class="things">${some.map(one => html`<li><div><span class="kind ${one.level === 'ok' ? '' : 'warns'}">${one.level}</span> <span dir="auto">${one.text}</span></div>${one.hint ? html`<div class="faint">${one.hint}</div>` : nothing}</li>`)}</ul>`
    const sound = all.filter(one => one.level === 'ok')
    return html`${list(all.filter(one => one.level !== 'ok'))}
      ${sound.length ? html`<details><summary>${many(sound.length, 'thing')} ${sound.length === 1 ? 'is' : 'are'} as ${sound.length === 1 ? 'it' : 'they'} should be</summary>${list(sound)}</details>` : nothing}`
  }

  protected override render(): TemplateResult {
    const state = this.state
    return html`<section class="page" aria-busy=${this.busy}><h2>This vault</h2>${this.problem()}
      ${state === null ? nothing : html`
      <div class="cards">
        <a class="card" href="#/memories"><strong>${state.memories.toLocaleString()}</strong><span>${state.memories === 1 ? 'memory' : 'memories'}</span></a>
        <a class="card" href="#/timeline"><strong>${state.events.toLocaleString()}</strong><span>${state.events === 1 ? 'event' : 'events'}</span></a>
        <a class="card" href="#/conflicts"><strong>${state.conflicts.toLocaleString()}</strong><span>${state.conflicts === 1 ? 'conflict' : 'conflicts'}</span></a>
        <div class="card"><strong>${MODES[state.mode]?.[0] ?? state.mode}</strong><span>${MODES[state.mode]?.[1] ?? ''}</span></div>
      </div>
      ${state.notices.length ? html`<ul class="notices" aria-label="Notices">${state.notices.map(one => html`<li dir="auto">${sentence(one)}</li>`)}</ul>` : nothing}
      ${state.published ? html`<h3>Sync</h3><div class="line"><span>${state.unpublished ? 'You have unsynced changes.' : this.step?.exit_code ? 'The last sync was not complete.' : 'Everything here is published.'}</span>
        ${this.mayWrite ? html`<button class="main" @click=${this.#sync} ?disabled=${this.#runs}>${this.#runs ? 'Syncing…' : 'Sync now'}</button>` : nothing}</div>
        <p class="faint" role="status">${this.step?.doing ? html`${sentence(this.step.doing).slice(0, -1)}${this.step.total ? html` <progress max=${this.step.total} value=${this.step.done} aria-label=${this.step.doing}></progress>` : nothing}` : this.said}</p>
        <h3>Providers</h3>
        <ul class="things">${this.providers.map(one => html`<li><div><strong>${one.name}</strong> ${one.problem ? html`<span class="kind warns">not reached</span>` : nothing}</div><div class="faint">${one.problem ? sentence(one.problem) : one.can}${one.at === null ? '' : ` · published ${moment(one.at)}`}</div>${one.problem ? nothing : one.limits.map(limit => html`<div class="faint">${sentence(limit)}</div>`)}</li>`)}</ul>
        ${this.providers.length || this.place.client.alone ? nothing : html`<p class="faint">No provider yet. Add one: <code>ipfsmem --vault ${state.vaultName} provider add SPEC</code></p>`}
        <h3>Devices and members</h3>
        <ul class="things">${this.members.map(one => html`<li><div><strong dir="auto">${one.label || one.id}</strong> ${one.thisDevice ? html`<span class="kind">this device</span>` : nothing}</div><div class="faint">${memberSaid(one)}</div></li>`)}</ul>
        ${this.place.client.alone ? nothing : html`<p class="faint">Adding and revoking members requires your wallet: <code>ipfsmem --vault ${state.vaultName} member</code></p>`}` : this.place.client.alone ? nothing : html`<p class="faint">It is stored only on this disk. For a vault that syncs with your other devices: <code>ipfsmem init --vault NEW</code></p>`}
      <h3>Health</h3><div class="line"><span>${this.findings === null ? 'Check this device’s copy.' : worst(this.findings)}</span><button @click=${this.#check} ?disabled=${this.acting}>Check</button></div>
      ${this.findings === null ? nothing : this.#findings(this.findings)}
      <h3>Export</h3><p class="faint">Files are plain text, even from an encrypted vault: store them where only you can read them.${this.place.client.alone && this.mayWrite ? ' The CAR is encrypted; a device with a provider publishes it with ipfsmem sync --car.' : ''}</p>
      <div class="actions"><button @click=${() => void this.#export('zip')}>Save as files (zip)</button>${this.place.client.alone && !this.mayWrite ? nothing : html`<button @click=${() => void this.#export('car')}>Save as CAR</button>`}</div>
      ${this.lacks === null ? nothing : this.#confirmation(this.lacks.format, this.lacks.said)}`}
    </section>`
  }
}
customElements.define('vault-view', VaultView)

const MODES: Readonly<Record<string, readonly [string, string]>> = {
  'encrypted-ipfs': ['Encrypted', 'on this device and at the providers'],
  ipfs: ['Public', 'anyone can read the published data'],
  local: ['Local', 'plain files on this disk'],
  none: ['In memory', 'lost when this process ends']
}

/** Names of kinds of members, and the rights of roles. */
const KINDS: Readonly<Record<string, string>> = { device: 'Device', wallet: 'Wallet', words: 'Recovery phrase' }
const ROLES: Readonly<Record<string, string>> = { admin: 'adds and removes members', writer: 'reads and writes', reader: 'reads' }

function memberSaid(one: Member): string {
  const published = one.kind !== 'device' || one.heard === undefined ? '' : one.heard === null ? 'published nothing yet' : `last published ${moment(one.heard)}`
  return [KINDS[one.kind] ?? one.kind, ROLES[one.role] ?? one.role, one.root ? 'from the beginning' : '', published].filter(Boolean).join(' · ')
}

function worst(findings: readonly Finding[]): string {
  const wrong = findings.filter(one => one.level !== 'ok').length
  return wrong === 0 ? 'No problems found.' : `${many(wrong, 'finding')} to review.`
}
