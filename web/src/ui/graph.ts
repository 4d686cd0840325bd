/** The graph: the entities, the observations and neighbours of one, and a picture that the keyboard can navigate too. */

import { html, nothing, type PropertyValues, svg, type SVGTemplateResult, type TemplateResult } from 'lit'
import type { Entity, Graph } from './life.ts'
import { HEIGHT, NODES, placed, type Spot, WIDTH } from './picture.ts'
import { empty, many, View } from './view.ts'

const REST = 160

export class GraphView extends View {
  static override properties = { ...View.properties, chosen: { attribute: false }, found: { state: true }, near: { state: true }, query: { state: true }, depth: { state: true } }
  declare chosen: string
  declare found: readonly Entity[] | null
  /** The pictured graph: the neighbours of the chosen entity, else all. */
  declare near: Graph | null
  declare query: string
  declare depth: number
  #waiting = 0
  #requests = 0

  constructor() {
    super()
    Object.assign(this, { chosen: '', found: null, near: null, query: '', depth: 1 })
  }

  protected override willUpdate(changed: PropertyValues<this>): void {
    const before = changed.get('place')
    const moved = changed.has('place') && (before?.scope !== this.place.scope || before?.revision !== this.place.revision || before?.client !== this.place.client)
    if (moved) void this.#load()
    if (moved || changed.has('chosen') || changed.has('depth')) void this.#look()
  }

  async #load(): Promise<void> {
    const found = await this.attempt(() => this.life.graph.entities(this.place.scope, this.query.trim()))
    if (found !== undefined) this.found = found
  }

  async #look(): Promise<void> {
    const number = ++this.#requests
    const how = this.chosen ? { entity: this.chosen, depth: this.depth } : {}
    const near = await this.attempt(() => this.life.graph.graph(this.place.scope, { ...how, limit: this.chosen ? 200 : NODES }))
    if (number === this.#requests) this.near = near ?? null
  }

  #typed(event: Event): void {
    this.query = (event.target as HTMLInputElement).value
    clearTimeout(this.#waiting)
    this.#waiting = window.setTimeout(() => void this.#load(), REST)
  }

  #picture(graph: Graph): TemplateResult {
    const { spots, lines, left } = placed(graph, this.chosen)
    const words = this.chosen ? `Neighbours of ${spots[0]?.name ?? this.chosen}` : 'The graph'
    const shapes: SVGTemplateResult[] = lines.map(one => svg`<line x1=${one.x1} y1=${one.y1} x2=${one.x2} y2=${one.y2}><title>${one.words}</title></line>`)
    return html`<figure class="picture"><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="group" aria-label=${words}>${shapes}
      ${spots.map(one => svg`<a href=${link(one.key)} aria-label=${`${one.name}, ${one.kind}`} aria-current=${one.key === this.chosen ? 'true' : nothing} class=${one.key === this.chosen ? 'spot chosen' : 'spot'}>
        <circle cx=${one.x} cy=${one.y} r=${one.key === this.chosen ? 11 : 8}></circle>${named(one)}</a>`)}</svg>
      ${left || graph.more ? html`<figcaption class="faint">${left ? `${many(left, 'entity', 'entities')} more did not fit in the picture` : 'There is more than the picture shows'}.</figcaption>` : nothing}</figure>`
  }

  #relations(graph: Graph): TemplateResult {
    const names = new Map(graph.nodes.map(one => [one.key, one.name]))
    const mine = graph.edges.filter(one => one.begin === this.chosen || one.end === this.chosen)
    if (!mine.length) return html`<p class="faint">No relations.</p>`
    return html`<ul class="things relations">${mine.map(one => {
      const away = one.begin === this.chosen
      const other = away ? one.end : one.begin
      const named = html`<a href=${link(other)} dir="auto">${names.get(other) ?? other}</a>`
      const how = html`<span class="kind" dir="auto">${one.type}</span>`
      return away ? html`<li>${how} ${named}</li>` : html`<li>${named} ${how} it</li>`
    })}</ul>`
  }

  #detail(): TemplateResult {
    const back = html`<a class="back button" href="#/graph">‹ All entities</a>`
    const one = this.near?.nodes.find(each => each.key === this.chosen)
    if (this.near === null || one === undefined) return html`<div class="memory" aria-busy=${this.busy}>${back}${this.problem()}</div>`
    return html`<article class="memory" aria-busy=${this.busy}>${back}<div class="bar"><h2 dir="auto">${one.name}</h2><div class="actions"><a class="button" href=${`#/memories/${encodeURIComponent(one.key)}`}>Open the memory</a></div></div>
      ${this.problem()}<p class="lead" dir="auto">${one.kind}</p>
      ${one.observations.length ? html`<ul class="observations">${one.observations.map(said => html`<li dir="auto">${said}</li>`)}</ul>` : nothing}
      <h3>Related</h3>${this.#relations(this.near)}
      <div class="bar picture-bar"><h3>Neighbours</h3><label class="inline">Relations away<select aria-label="Relations away" @change=${(event: Event) => (this.depth = Number((event.target as HTMLSelectElement).value))}>
        ${[1, 2, 3].map(depth => html`<option value=${depth} ?selected=${depth === this.depth}>${depth}</option>`)}</select></label></div>
      ${this.#picture(this.near)}</article>`
  }

  #all(): TemplateResult {
    if (this.near === null) return html`<div class="memory" aria-busy=${this.busy}></div>`
    if (!this.near.nodes.length) return empty('No graph yet', 'A memory that links to another, such as “works at [[acme]]” in a list, is an entity with a relation. Relations that your agents add appear here.')
    return html`<div class="memory"><h2>The graph</h2><p class="lead">Choose an entity, here or in the list.</p>${this.#picture(this.near)}</div>`
  }

  protected override render(): TemplateResult {
    return html`<div class=${this.chosen ? 'split open' : 'split'}>
      <section class="list" aria-label="Entities" aria-busy=${this.busy}><div class="tools"><input type="search" placeholder="Search entities" aria-label="Search entities" .value=${this.query} @input=${this.#typed} autocomplete="off" spellcheck="false"></div>
        <div class="tools under"><p class="count" role="status">${this.found === null ? 'Loading…' : many(this.found.length, 'entity', 'entities')}</p></div>
        ${this.chosen ? nothing : this.problem()}
        ${this.found?.length ? html`<ul class="items">${this.found.map(one => html`<li><a class=${one.key === this.chosen ? 'item chosen' : 'item'} href=${link(one.key)} aria-current=${one.key === this.chosen ? 'true' : nothing}>
          <span class="title" dir="auto">${one.name}</span><span class="when">${one.kind}</span><span class="about" dir="auto">${one.observations[0] ?? one.key}</span></a></li>`)}</ul>`
        : this.found === null ? nothing : empty('No entities', this.query.trim() ? 'Try other words, or another scope.' : 'None in this scope.')}</section>
      <section class="detail" aria-label="Entity">${this.chosen ? this.#detail() : this.#all()}</section></div>`
  }
}
customElements.define('graph-view', GraphView)

function link(key: string): string {
  return `#/graph/${encodeURIComponent(key)}`
}

/** The name of a spot: below it, or outward from the centre and never upside down. */
function named(one: Spot): SVGTemplateResult {
  if (one.turn === undefined) return svg`<text x=${one.x} y=${one.y + 22} text-anchor="middle">${one.short}</text>`
  const left = Math.abs(one.turn) > 90
  return svg`<text x=${one.x + (left ? -12 : 12)} y=${one.y + 4} text-anchor=${left ? 'end' : 'start'} transform=${`rotate(${left ? one.turn + 180 : one.turn} ${one.x} ${one.y})`}>${one.short}</text>`
}
