/**
 * The page: shows one view of a vault at a time. The page of `ipfsmem ui` authenticates with the one-time code in its address and holds its
 * token only in memory; any other page passes the `client` of the vault that it opened.
 */

import { html, LitElement, nothing, type TemplateResult } from 'lit'
import { type Change, type MemoryClient, type Opened, Refusal, type Scope } from './client.ts'
import { Drafts } from './drafts.ts'
import { HttpClient } from './http_client.ts'
import { type Place, sentence } from './view.ts'
import './memories.ts'
import './timeline.ts'
import './conflicts.ts'
import './context.ts'
import './vault.ts'
import './sessions.ts'
import './graph.ts'
import './dreams.ts'
import './usage.ts'

const VIEWS = [['memories', 'Memories'], ['timeline', 'Timeline'], ['sessions', 'Sessions'], ['graph', 'Graph'], ['conflicts', 'Conflicts'], ['context', 'Agent’s view'], ['dreams', 'Tidy up'], ['usage', 'Usage'], ['vault', 'This vault']] as const
/** Views in which the address selects one item. */
const CHOOSING: readonly string[] = ['memories', 'sessions', 'graph']
/** A view that a page adds to those of every page. */
export type Extra = { readonly name: string; readonly words: string; readonly show: (place: Place) => TemplateResult }
/** Milliseconds in which changes are collected before the views reload. */
const GATHER = 60
/** Milliseconds after which a locked page, or one whose request failed, asks again; it does not depend on events. */
const AGAIN = 1000

export class MemoryApp extends LitElement {
  static override properties = { client: { attribute: false }, extras: { attribute: false }, opened: { state: true }, shut: { state: true }, view: { state: true }, chosen: { state: true }, scope: { state: true }, scopes: { state: true }, clashes: { state: true }, revision: { state: true }, online: { state: true }, step: { state: true } }
  declare client: MemoryClient | null
  declare extras: readonly Extra[]
  declare opened: Opened | null
  declare shut: Refusal | null
  declare view: string
  declare chosen: string
  declare scope: string
  declare scopes: readonly Scope[]
  declare clashes: number
  declare revision: number
  declare online: boolean
  declare step: Change | null
  #end: (() => void) | null = null
  #gathering = 0
  #requests = 0
  #place: Place | null = null
  readonly #drafts = new Drafts()

  constructor() {
    super()
    Object.assign(this, { client: null, extras: [], opened: null, shut: null, view: 'memories', chosen: '', scope: '', scopes: [], clashes: 0, revision: 0, online: true, step: null })
  }

  protected override createRenderRoot(): HTMLElement {
    return this
  }

  override connectedCallback(): void {
    super.connectedCallback()
    void this.#begin(takenCode(''))
    window.addEventListener('hashchange', () => {
      const code = takenCode(address(this.view, this.chosen))
      if (code === null) this.#read()
      else void this.#begin(code)
    })
    window.addEventListener('beforeunload', event => this.#drafts.any && event.preventDefault())
    window.addEventListener('keydown', event => this.#keyed(event))
    this.addEventListener('shut', event => {
      this.shut = (event as CustomEvent<Refusal>).detail
      if (this.shut.status !== 401) this.#later()
    })
  }

  /** `/` focuses the search of a view, Escape leaves it. */
  #keyed(event: KeyboardEvent): void {
    const typing = event.target instanceof HTMLElement && event.target.matches('input, textarea, select')
    const search = this.querySelector<HTMLInputElement>('main input[type=search]')
    if (search === null || event.ctrlKey || event.metaKey || event.altKey) return
    if (event.key === '/' && !typing) {
      event.preventDefault()
      search.focus()
    } else if (event.key === 'Escape' && event.target === search) this.querySelector<HTMLElement>('.rows')?.focus()
  }

  async #begin(code: string | null): Promise<void> {
    try {
      if (code !== null && !this.client?.alone) {
        const client: MemoryClient = await HttpClient.exchange(code)
        client.choose(this.opened?.vaultName ?? '')
        this.client = client
      }
      if (this.client === null) throw new Refusal('CodeError', 'this page is opened by the link of ipfsmem ui', 'Run it again, or press Enter in its terminal, for a new link.', 401)
      await this.#open()
      this.#read()
    } catch (error) {
      // A wrong code in the address of an open page must not close it.
      if (this.#place !== null && this.shut === null) return
      this.shut = error instanceof Refusal ? error : new Refusal('Unexpected', String(error), '', 500)
    }
  }

  /** Listen first, so that no change after the first answer is missed. */
  async #open(): Promise<void> {
    this.#end?.()
    this.#end = this.client!.subscribe({ change: change => this.#heard(change), connected: yes => this.#connected(yes) })
    await this.#look()
  }

  /** Ask what is open. Only the last of several questions is answered; it is repeated while the page is locked. */
  async #look(): Promise<void> {
    const request = ++this.#requests
    try {
      const opened = await this.client!.open()
      if (request !== this.#requests) return
      this.opened = opened
      if (this.shut !== null && !opened.locked) this.revision++
      this.shut = opened.locked ? new Refusal('PassphraseError', 'this vault is locked', `Unlock it on this machine: ipfsmem --vault ${opened.vaultName} unlock. This page then continues automatically.`, 423) : null
      if (this.shut !== null) this.#later(request)
      else await this.#around()
    } catch (error) {
      if (request !== this.#requests) return
      const refusal = error instanceof Refusal ? error : new Refusal('Unexpected', String(error), '', 500)
      if (this.#place === null || refusal.status === 401) this.shut = refusal
      if (refusal.status !== 401) this.#later(request)
    }
  }

  /** Ask again soon, unless that was done meanwhile. */
  #later(request = this.#requests): void {
    window.setTimeout(() => request === this.#requests && void this.#look(), AGAIN)
  }

  async #around(): Promise<void> {
    try {
      const [scopes, clashes] = await Promise.all([this.client!.scopes(), this.opened!.whole ? this.client!.conflicts() : []])
      Object.assign(this, { scopes, clashes: clashes.length })
    } catch {
      // The open view shows the error.
    }
  }

  #connected(yes: boolean): void {
    this.online = yes
    // Earlier changes were not received.
    if (!yes || this.opened === null) return
    void this.#look()
    this.#soon()
  }

  #heard(change: Change): void {
    if (change.what === 'sync') {
      this.step = change
      if (change.doing) return
    }
    if (change.what === 'locked') {
      void this.#look()
      return
    }
    this.#soon()
  }

  #soon(): void {
    if (this.#gathering || this.shut !== null) return
    this.#gathering = window.setTimeout(() => {
      this.#gathering = 0
      this.revision++
      void this.#around()
    }, GATHER)
  }

  #read(): void {
    const [view, key = ''] = location.hash.slice(2).split('/')
    this.view = [...VIEWS.map(([name]) => name as string), ...this.extras.map(one => one.name)].includes(view!) ? view! : 'memories'
    this.chosen = CHOOSING.includes(this.view) ? decoded(key) : ''
  }

  #go(view: string, key = ''): void {
    location.hash = address(view, key)
    this.#read()
  }

  protected override willUpdate(): void {
    if (this.client === null || this.opened === null || (this.#place === null && this.shut !== null)) return
    const place: Place = { client: this.client, drafts: this.#drafts, vaultName: this.opened.vaultName, scope: this.scope, right: this.opened.right, revision: this.revision, whole: this.opened.whole }
    if (this.#place === null || Object.entries(place).some(([name, value]) => this.#place![name as keyof Place] !== value)) this.#place = place
  }

  /** Open the page again with another link, keeping all drafts. */
  #again(event: Event): void {
    event.preventDefault()
    const input = (event.target as HTMLFormElement).querySelector('input')!
    const code = input.value.trim().replace(/^.*#code=/, '')
    input.value = ''
    if (code) void this.#begin(code)
  }

  #shut(refusal: Refusal): TemplateResult {
    const locked = refusal.status === 423
    const ended = refusal.status === 401
    const typed = ended ? this.#drafts.texts() : []
    return html`<main class="shut">${sign(locked ? LOCK : refusal.status === 0 ? PLUG : DOOR)}
      <h1>${locked ? 'Locked' : refusal.status === 0 ? 'No connection' : ended ? 'Open it from your terminal' : 'Cannot open'}</h1>
      <p>${ended && refusal.kind !== 'CodeError' ? 'The ipfsmem ui that opened this page has ended. Run it again, and paste its link here.' : refusal.hint || sentence(refusal.message)}</p>${ended ? html`<pre>ipfsmem ui</pre>
        <form class="again" @submit=${this.#again}><input aria-label="The link that ipfsmem ui printed" placeholder="http://127.0.0.1:8790/#code=…" autocomplete="off" spellcheck="false"><button>Open</button></form>` : nothing}
      ${typed.length ? html`<section class="typed" aria-label="Unsaved text"><p>Your unsaved text stays in this tab until then.</p>
        ${typed.map(one => html`<label><span dir="auto">${one.name}</span><textarea readonly rows="6" dir="auto" .value=${one.text}></textarea></label>`)}</section>` : nothing}</main>`
  }

  protected override render(): TemplateResult {
    const place = this.#place
    if (this.shut !== null && place === null) return this.#shut(this.shut)
    if (place === null) return html`<main class="shut" aria-busy="true"><p class="faint">Opening…</p></main>`
    const known = this.opened!
    const shut = this.shut !== null
    // Drafts outlive a lock: the views stay, hidden.
    return html`${this.shut === null ? nothing : this.#shut(this.shut)}<div class="open" ?hidden=${shut} ?inert=${shut}><a class="skip" href="#content" @click=${(event: Event) => { event.preventDefault(); this.querySelector<HTMLElement>('#content')?.focus() }}>Skip to content</a>
      <header class="top"><strong class="brand">ipfsmem</strong>
        ${known.vaultNames.length > 1 ? html`<select aria-label="Memory" @change=${(event: Event) => { this.client!.choose((event.target as HTMLSelectElement).value); this.scope = ''; this.revision++; this.#go('memories'); void this.#open() }}>${known.vaultNames.map(one => html`<option ?selected=${one === known.vaultName}>${one}</option>`)}</select>` : html`<span class="faint">${known.vaultName}</span>`}
        <nav aria-label="Views">${VIEWS.map(([name, words]) => ((name === 'vault' || name === 'conflicts') && !known.whole) ? nothing : html`<a href="#/${name}" aria-current=${this.view === name ? 'page' : nothing}>${words}${name === 'conflicts' && this.clashes ? html`<span class="badge" aria-label="${this.clashes} open">${this.clashes}</span>` : nothing}</a>`)}
          ${this.extras.map(({ name, words }) => html`<a href="#/${name}" aria-current=${this.view === name ? 'page' : nothing}>${words}</a>`)}</nav>
        ${this.scopes.length ? html`<select class="scope" aria-label="Scope" @change=${(event: Event) => { this.scope = (event.target as HTMLSelectElement).value; if (this.chosen) this.#go(this.view) }}>
          <option value="">Default scope</option>${this.scopes.map(one => html`<option value=${one.name} ?selected=${one.name === this.scope}>${one.title} (${one.memories})</option>`)}</select>` : nothing}
      </header>
      ${this.step?.exit_code ? html`<div class="offline" role="alert"><strong>The last sync was not complete:</strong> <span dir="auto">${sentence(this.step.said || 'the sync was not complete')}</span> <a href="#/vault">Look</a></div>` : nothing}
      ${this.online ? nothing : html`<div class="offline" role="status">ipfsmem does not respond. The shown data may be outdated; retrying automatically.</div>`}
      <main id="content" tabindex="-1" @go=${(event: CustomEvent<string>) => this.#go('memories', event.detail)}>${this.#view(place)}</main></div>`
  }

  protected override updated(): void {
    this.querySelector('nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' })
  }

  #view(place: Place): TemplateResult {
    switch (this.view) {
      case 'timeline': return html`<timeline-view .place=${place}></timeline-view>`
      case 'conflicts': return html`<conflicts-view .place=${place}></conflicts-view>`
      case 'context': return html`<context-view .place=${place}></context-view>`
      case 'sessions': return html`<sessions-view .place=${place} .chosen=${this.chosen}></sessions-view>`
      case 'graph': return html`<graph-view .place=${place} .chosen=${this.chosen}></graph-view>`
      case 'dreams': return html`<dreams-view .place=${place}></dreams-view>`
      case 'usage': return html`<usage-view .place=${place}></usage-view>`
      case 'vault': return html`<vault-view .place=${place} .step=${this.step}></vault-view>`
      default: return this.extras.find(one => one.name === this.view)?.show(place) ?? html`<memories-view .place=${place} .chosen=${this.chosen}></memories-view>`
    }
  }
}
customElements.define('memory-app', MemoryApp)

/** Drawn, since not every system has such a glyph. */
const LOCK = 'M7 11V7.5a5 5 0 0 1 10 0V11M5 11h14v9H5z'
const PLUG = 'M12 3v8M6.5 6.5a8 8 0 1 0 11 0'
const DOOR = 'M6 21V4h12v17M3 21h18M14 12.5v.5'

function sign(path: string): TemplateResult {
  return html`<svg class="sign" viewBox="0 0 24 24" aria-hidden="true"><path d=${path}></path></svg>`
}

function address(view: string, key: string): string {
  return `#/${view}${key ? `/${encodeURIComponent(key)}` : ''}`
}

/** Take the code out of the address, so that no history or screenshot shows it; `instead` replaces it. */
function takenCode(instead: string): string | null {
  const code = new URLSearchParams(location.hash.slice(1)).get('code')
  if (code !== null) history.replaceState(null, '', location.pathname + instead)
  return code
}

/** Decode a part of an address; return it unchanged if it is not valid. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}
