/** What the views of the life of a memory share: its part of the client, and what is said where there is none. */

import { html, type TemplateResult } from 'lit'
import type { LifeClient } from './life.ts'
import { empty, View } from './view.ts'

export abstract class LifeView extends View {
  protected get lacking(): boolean {
    return this.place.client.life === undefined
  }

  protected get life(): LifeClient {
    return this.place.client.life!
  }

  protected absent(title: string): TemplateResult {
    return html`<section class="page"><h2>${title}</h2>${empty('Not in this browser', 'The memory of this page is in the browser itself, which does not have this view yet. The page that ipfsmem ui opens on your machine has it.')}</section>`
  }
}
