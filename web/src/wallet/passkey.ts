/** A passkey that wraps this browser's own keys, by its PRF output (WebAuthn level 3). No ring and no other device knows of it. */

import { base64url, type Bytes, fromBase64url, sha256 } from '../core/bytes.ts'
import { MemoryError } from '../device/errors.ts'
import { type Opener, openerOfPasskey } from '../store/browser_keys.ts'

const SALT = 'ipfsmem/web/passkey/1'
const inputs = (): AuthenticationExtensionsClientInputs => ({ prf: { eval: { first: sha256(SALT) as BufferSource } } })

type Results = { readonly prf?: { readonly results?: { readonly first?: ArrayBuffer } } }

function openerOf(credential: Credential | null): Opener | null {
  if (credential === null) return null
  const it = credential as PublicKeyCredential
  const first = (it.getClientExtensionResults() as Results).prf?.results?.first
  return first === undefined ? null : openerOfPasskey(base64url(new Uint8Array(it.rawId)), new Uint8Array(first))
}

/** Create a passkey for this browser. `user`: 16 random bytes; `label`: its name in the browser's list. */
export async function makePasskey(chance: (size: number) => Bytes, label: string): Promise<Opener> {
  const made = await navigator.credentials
    .create({
      publicKey: {
        challenge: chance(32) as BufferSource,
        rp: { name: 'ipfsmem' },
        user: { id: chance(16) as BufferSource, name: label, displayName: label },
        pubKeyCredParams: [
          { type: 'public-key', alg: -8 },
          { type: 'public-key', alg: -7 },
          { type: 'public-key', alg: -257 }
        ],
        authenticatorSelection: { residentKey: 'preferred', userVerification: 'required' },
        extensions: inputs()
      }
    })
    .catch(declined)
  // Some return the secret only when the passkey is used.
  return openerOf(made) ?? usePasskey([base64url(new Uint8Array((made as PublicKeyCredential).rawId))], chance)
}

/** Return the opener of a passkey of this browser. `ids`: of the accepted credentials. */
export async function usePasskey(ids: readonly string[], chance: (size: number) => Bytes): Promise<Opener> {
  const used = await navigator.credentials
    .get({
      publicKey: {
        challenge: chance(32) as BufferSource,
        allowCredentials: ids.map(id => ({ type: 'public-key' as const, id: fromBase64url(id) as BufferSource })),
        userVerification: 'required',
        extensions: inputs()
      }
    })
    .catch(declined)
  const opener = openerOf(used)
  if (opener === null) throw new MemoryError('usage', 'this passkey does not return a secret for wrapping keys', 'Try another passkey, or unlock with the wallet or the recovery phrase.')
  return opener
}

function declined(error: unknown): never {
  throw new MemoryError('usage', `the passkey was not used: ${error instanceof Error ? error.message : error}`, 'Unlock with the wallet or the recovery phrase.')
}

export const passkeyIds = (openers: readonly string[]): string[] => openers.flatMap(one => (one.startsWith('passkey ') ? [one.slice(8)] : []))
