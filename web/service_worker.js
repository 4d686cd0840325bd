// Keeps the files of this page, and nothing of a memory, so that it opens without a network. What is new is used from the next start on.

// Another of these pages on the same host keeps its own.
const NAME = `${registration.scope} ipfsmem-page-%VERSION%`
const OURS = NAME.slice(0, NAME.lastIndexOf('-') + 1)
const FILES = ['%FILES%'].map(name => new URL(name, registration.scope).href)

addEventListener('install', event => {
  event.waitUntil(caches.open(NAME).then(kept => kept.addAll(FILES.map(url => new Request(url, { cache: 'reload' })))))
})

addEventListener('activate', event => {
  const drop = all => Promise.all(all.filter(name => name.startsWith(OURS) && name !== NAME).map(name => caches.delete(name)))
  event.waitUntil(caches.keys().then(drop).then(() => clients.claim()))
})

addEventListener('fetch', event => {
  const { request } = event
  const url = request.url.split(/[?#]/)[0].replace(/\/index\.html$/, '/')
  if (request.method !== 'GET' || !FILES.includes(url)) return
  event.respondWith(caches.open(NAME).then(kept => kept.match(url)).then(found => found ?? fetch(request)))
})
