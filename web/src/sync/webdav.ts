/** The address of a shared folder at a WebDAV server, and the provider for it. The server must allow the origin of the page (CORS). */

import { defaultEnvironment, type Environment } from '../device/device.ts'
import { MemoryError } from '../device/errors.ts'
import type { Fetch } from './http.ts'
import { loadedLater } from './loaded_later.ts'
import type { Provider } from './provider.ts'

const LOOPBACK = /^(?:localhost|127\.0\.0\.1|\[::1\])$/
const HINT = 'For instance webdav:https://example.org/memory, with user:password as its token (at Nextcloud an app password).'

/** `address`: of the folder. `account`: `user:password`; without one the folder is only read. MemoryError for an unusable address. */
export function webdav(address: string, account: string | null, fetch: Fetch, environment: Environment = defaultEnvironment): Provider {
  const refuse = (what: string): never => {
    throw new MemoryError('usage', what, HINT)
  }
  if (!URL.canParse(address) || /[?#]/.test(address)) refuse('the text after webdav: is not the address of a folder')
  const url = new URL(address)
  if (url.username !== '' || url.password !== '') refuse('the address of the WebDAV folder holds a user name or a password: it would be shown')
  if (url.protocol === 'http:' && !LOOPBACK.test(url.hostname)) refuse('http:// sends the password in the clear')
  if (account?.includes(':') === false) refuse('the token of a WebDAV folder is not a user and a password')
  url.pathname = url.pathname.replace(/\/*$/, '/')
  const name = `webdav:${url.href.replace(/\/$/, '')}`
  return loadedLater(name, async () => (await import('./dav_folder.ts')).davFolder(name, url, account, fetch, environment), { reads: true, names: true, writes: account !== null, small: true })
}
