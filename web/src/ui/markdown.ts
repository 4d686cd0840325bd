/** A text of anybody as a piece of the page: Markdown, made harmless. Nothing remote is loaded, nothing runs, nothing looks like the page. */

import DOMPurify from 'dompurify'
import { marked } from 'marked'

/** Characters of a text that are rendered; the rest is told. */
const MOST = 200_000

DOMPurify.addHook('afterSanitizeAttributes', node => {
  if (node.nodeName === 'A') {
    node.setAttribute('target', '_blank')
    node.setAttribute('rel', 'noopener noreferrer')
  }
  if (node.nodeName === 'IMG' && !(node.getAttribute('src') ?? '').startsWith('data:image/')) {
    const words = node.ownerDocument.createElement('span')
    words.className = 'left-out'
    words.textContent = `[image not loaded: ${node.getAttribute('alt') || node.getAttribute('src') || ''}]`
    node.replaceWith(words)
  }
})

export function rendered(text: string): DocumentFragment {
  const html = marked.parse(text.length > MOST ? `${text.slice(0, MOST)}\n\n…` : text, { async: false, gfm: true })
  return DOMPurify.sanitize(html, {
    RETURN_DOM_FRAGMENT: true,
    USE_PROFILES: { html: true },
    FORBID_TAGS: ['style', 'form', 'input', 'button', 'textarea', 'select', 'video', 'audio', 'source', 'iframe', 'dialog'],
    FORBID_ATTR: ['style', 'id', 'class', 'name', 'srcset', 'background', 'popover']
  })
}
