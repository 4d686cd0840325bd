/** The list of memories: by scope and type, searchable, with only the visible lines in the DOM. */

import { html, nothing, type PropertyValues, type TemplateResult } from 'lit'
import { BEST, type Line } from './client.ts'
import { empty, many, View } from './view.ts'
import { TYPES } from './memory.ts'

/** Pixels per line, lines drawn beyond the visible ones, and lines per page. */
const HEIGHT = 68
const BEYOND = 6
const PAGE = 1000
/** Milliseconds without typing before a search. */
const REST = 160

const ORDERS = [['newest', 'Newest first'], ['name', 'By name']] as const
type Order = (typeof ORDERS)[number][0]

export class MemoriesView extends View {
  static override properties = { ...View.properties, lines: { state: true }, total: { state: true }, query: { state: true }, found: { state: true }, order: { state: true }, type: { state: true }, chosen: { attribute: false }, top: { state: true }, making: { state: true } }
  declare lines: readonly Line[]
  declare total: number
  declare query: string
  /** The query that `lines` answers; null for the list of all. */
  declare found: string | null
  declare order: Order
  declare type: string
  declare chosen: string
  declare top: number
  declare making: boolean
  #requests = 0
  #waiting = 0
  #height = 800
  #loaded = false

  constructor() {
    super()
    Object.assign(this, { lines: [], total: 0, query: '', found: null, order: 'newest', type: '', chosen: '', top: 0, making: false })
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    const before = changed.get('place')
    if (changed.has('chosen') && this.chosen) this.making = false
    if (changed.has('place') && (before?.scope !== this.place.scope || before?.revision !== this.place.revision || before?.client !== this.place.client)) {
      if (before?.scope !== this.place.scope) this.top = 0
      void this.load()
    }
  }

  async load(): Promise<void> {
    const number = ++this.#requests
    const { client, scope } = this.place
    const query = this.query.trim()
    const found = await this.attempt(async () => {
      if (query) {
        const hits = await client.recall(query, scope)
        return this.type ? hits.filter(one => one.type === this.type) : hits
      }
      const lines: Line[] = []
      for (let cursor: string | null = ''; cursor !== null; ) {
        const page = await client.list(scope, { type: this.type, cursor, limit: PAGE })
        lines.push(...page.lines)
        cursor = page.next
        if (number !== this.#requests) break
        // The first page is shown at once; the rest follows.
        if (cursor !== null && !this.#loaded) this.lines = [...lines]
        this.total = page.total
      }
      return sorted(lines, this.order)
    })
    if (number !== this.#requests || found === undefined) return
    this.#loaded = true
    this.lines = found
    this.found = query || null
    this.total = found.length
  }

  #reorder(order: Order): void {
    this.order = order
    this.#toTop()
    if (this.found === null) this.lines = sorted(this.lines, order)
  }

  #toTop(): void {
    this.top = 0
    this.querySelector('.rows')?.scrollTo(0, 0)
  }

  #typed(event: Event): void {
    this.query = (event.target as HTMLInputElement).value
    clearTimeout(this.#waiting)
    this.#waiting = window.setTimeout(() => {
      this.#toTop()
      void this.load()
    }, REST)
  }

  #choose(key: string): void {
    this.making = false
    this.dispatchEvent(new CustomEvent('go', { detail: key, bubbles: true }))
  }

  #keyed(event: KeyboardEvent): void {
    const at = this.lines.findIndex(one => one.key === this.chosen)
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -1e9, End: 1e9 }[event.key]
    if (step === undefined || !this.lines.length) return
    event.preventDefault()
    const next = Math.max(0, Math.min(this.lines.length - 1, Math.max(at, step === 1 ? -1 : 0) + step))
    this.#choose(this.lines[next]!.key)
  }

  #reveal(): void {
    const rows = this.querySelector('.rows')
    const at = this.lines.findIndex(one => one.key === this.chosen)
    if (rows === null || at < 0) return
    if (at * HEIGHT < rows.scrollTop) rows.scrollTop = at * HEIGHT
    if ((at + 1) * HEIGHT > rows.scrollTop + rows.clientHeight) rows.scrollTop = (at + 1) * HEIGHT - rows.clientHeight
  }

  protected override updated(changed: PropertyValues<this>): void {
    const rows = this.querySelector('.rows')
    // Not as style attributes: the page's policy forbids them.
    for (const row of this.querySelectorAll<HTMLElement>('[data-at]')) row.style.transform = `translateY(${Number(row.dataset['at']) * HEIGHT}px)`
    const space = this.querySelector<HTMLElement>('.space')
    if (space !== null) space.style.height = `${this.lines.length * HEIGHT}px`
    if (rows !== null && Math.abs(rows.clientHeight - this.#height) > HEIGHT) {
      this.#height = rows.clientHeight
      this.requestUpdate()
    }
    if (changed.has('chosen') || changed.has('lines')) this.#reveal()
  }

  #row(line: Line, at: number): TemplateResult {
    const chosen = line.key === this.chosen
    return html`<li role="option" id="row-${at}" data-at=${at} aria-selected=${chosen} aria-posinset=${at + 1} aria-setsize=${this.lines.length}
        class=${chosen ? 'row chosen' : 'row'} @click=${() => this.#choose(line.key)}>
      <span class="title" dir="auto">${line.name || line.key}</span>
      <span class="when">${line.score === null ? day(line.updated) : html`<span title="Score, relative to the other results"><span class="unseen">fits </span>${line.score.toFixed(2)}</span>`}</span>
      <span class="about" dir="auto">${line.description || (line.name ? line.key : '')}</span>
      <span class="marks">${this.place.drafts.memory(this.place.vaultName, this.place.scope, line.key) === null ? nothing : html`<span class="kind warns">draft</span>`}
        ${line.conflicts ? html`<span class="kind warns">conflict</span>` : nothing}
        ${line.own ? nothing : html`<span class="kind">by others</span>`}
        ${line.here ? nothing : html`<span class="kind">not fetched</span>`}
        ${line.type ? html`<span class="kind ${TYPES.includes(line.type) ? line.type : ''}">${line.type}</span>` : nothing}</span>
    </li>`
  }

  #count(): string {
    const query = this.query.trim() || null
    if (!this.#loaded || query !== this.found) return query === null ? 'Loading…' : 'Searching…'
    if (query === null) return many(this.total, 'memory', 'memories')
    return this.lines.length < BEST ? many(this.lines.length, 'match', 'matches') : `The ${BEST} best matches`
  }

  protected override render(): TemplateResult {
    const first = Math.max(0, Math.floor(this.top / HEIGHT) - BEYOND)
    const shown = this.lines.slice(first, first + Math.ceil(this.#height / HEIGHT) + 2 * BEYOND)
    const open = this.chosen !== '' || this.making
    const at = this.lines.findIndex(one => one.key === this.chosen)
    return html`<div class=${open ? 'split open' : 'split'}>
      <section class="list" aria-label="Memories">
        <div class="tools">
          <input type="search" placeholder="Search, or ask"  aria-label="Search memories" aria-keyshortcuts="/" title="Press / to come here" .value=${this.query} @input=${this.#typed} autocomplete="off" spellcheck="false">
          ${this.mayWrite ? html`<button class="main" @click=${() => { this.#choose(''); this.making = true }}>New</button>` : nothing}
        </div>
        <div class="tools under">
          <p class="count" role="status">${this.#count()}</p>
          <select class="quiet" aria-label="Type" .value=${this.type} @change=${(event: Event) => { this.type = (event.target as HTMLSelectElement).value; void this.load() }}>
            <option value="">All types</option>${TYPES.map(one => html`<option value=${one}>${one}</option>`)}
          </select>
          <select class="quiet" aria-label="Order" ?disabled=${this.found !== null} @change=${(event: Event) => this.#reorder((event.target as HTMLSelectElement).value as Order)}>
            ${ORDERS.map(([value, words]) => html`<option value=${value} ?selected=${value === this.order}>${words}</option>`)}</select>
        </div>
        ${open ? nothing : this.problem()}
        ${this.lines.length || !this.#loaded ? html`<ul class="rows" role="listbox" tabindex="0" aria-label="Memories" aria-activedescendant=${at >= 0 ? `row-${at}` : nothing}
            @keydown=${this.#keyed} @scroll=${(event: Event) => (this.top = (event.target as HTMLElement).scrollTop)}>
          <li class="space" role="presentation"></li>${shown.map((line, index) => this.#row(line, first + index))}</ul>`
        : this.found !== null ? empty('No results', 'Try other words, or another scope.')
        : empty('No memories yet', this.mayWrite ? 'Memories that your agents write appear here. You can also write one yourself.' : 'Memories that your agents write appear here.')}
      </section>
      <section class="detail" aria-label="Memory">
        ${open ? html`<memory-detail .place=${this.place} .key=${this.making ? '' : this.chosen} @made=${(event: CustomEvent<string>) => this.#choose(event.detail)}
            @drafted=${() => this.requestUpdate()}
            @close=${() => { this.making = false; this.#choose('') }}></memory-detail>`
        : this.#loaded && !this.total && this.found === null && !this.type && !this.place.scope && !this.place.client.alone ? html`<div class="empty"><h3>Let an agent remember here</h3>
            <p>Connect the program that you use, for instance:</p><pre>ipfsmem --vault ${this.place.vaultName} connect claude-code</pre></div>`
        : empty('Choose a memory', 'Its text, history and actions appear here.')}
      </section></div>`
  }

  protected override firstUpdated(): void {
    new ResizeObserver(() => this.requestUpdate()).observe(this)
  }
}
customElements.define('memories-view', MemoriesView)

/** Created once: each takes milliseconds. */
const NAMES = new Intl.Collator(undefined, { numeric: true })
const DAY = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' })
const DAY_OF_YEAR = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric' })

function sorted(lines: readonly Line[], order: Order): Line[] {
  const byName = (one: Line, other: Line): number => NAMES.compare(one.name || one.key, other.name || other.key)
  const newest = (one: Line, other: Line): number => (one.updated === other.updated ? 0 : one.updated < other.updated ? 1 : -1)
  return [...lines].sort(order === 'name' ? byName : (one, other) => newest(one, other) || byName(one, other))
}

/** Return a short date: without the current year. */
function day(text: string): string {
  const at = /^\d{4}-\d\d-\d\d/.exec(text) === null ? null : new Date(`${text.slice(0, 10)}T00:00`)
  if (at === null || Number.isNaN(at.getTime())) return text.slice(0, 10)
  return (at.getFullYear() === new Date().getFullYear() ? DAY : DAY_OF_YEAR).format(at)
}
