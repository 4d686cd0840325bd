// Pinata's own client against a server given by URL: every call that the stand-in answers. Prints what came back.
import { readFileSync } from 'node:fs'
import { PinataSDK } from 'pinata'

const [url, key, token, car, root] = process.argv.slice(2)
const make = (pinataJwt) => new PinataSDK({
  pinataJwt,
  pinataGateway: url,
  pinataGatewayKey: token,
  endpointUrl: `${url}/v3`,
  uploadUrl: `${url}/v3`,
  legacyUploadUrl: `${url}/pinning/pinFileToIPFS`
})
const [v3Key, legacyKey] = key.split(',')
const sdk = make(v3Key)
const out = {}

out.auth = await sdk.testAuthentication()
const file = await sdk.upload.public.file(new File(['hello'], 'hello.txt', { type: 'text/plain' }))
  .name('greeting').keyvalues({ kind: 'note' })
out.file = file
out.hidden = (await sdk.upload.private.file(new File(['secret'], 's.txt')).name('hidden')).network
out.json = await sdk.upload.public.json({ a: 1 }).name('data')
const packed = await sdk.upload.public.file(new File([readFileSync(car)], 'tree.car')).name('tree').car()
out.car = packed.cid
out.large = await sdk.upload.public.file(new File([new Uint8Array(95 * 1000 * 1000)], 'large.bin')).name('large')
out.folder = await make(legacyKey).upload.public.fileArray([
  new File(['one'], 'a.txt'), new File(['two'], 'b.txt')
]).name('folder')

out.byName = (await sdk.files.public.list().name('greeting').limit(10)).files
out.byKeyvalue = (await sdk.files.public.list().keyvalues({ kind: 'note' })).files.map((f) => f.name)
out.byCid = (await sdk.files.public.list().cid(root)).files.map((f) => f.name)
out.first = (await sdk.files.public.list().order('ASC').limit(1)).files.map((f) => f.name)
let all = 0
for await (const _ of sdk.files.public.list().limit(2)) all++
out.all = all
out.one = await sdk.files.public.get(file.id)
out.renamed = (await sdk.files.public.update({ id: file.id, name: 'salute' })).name
out.job = await sdk.upload.public.cid('bafkqaaa').name('from the network')
out.queue = (await sdk.files.public.queue().cid('bafkqaaa')).jobs.map((job) => job.status)
sdk.gateways.public.config.pinataGateway = url // the client puts https:// before every gateway
out.read = (await sdk.gateways.public.get(file.cid)).data.size
out.deleted = await sdk.files.public.delete([file.id, 'nothing'])
out.after = (await sdk.files.public.list().name('salute')).files.length
for (const [name, bad] of [['unknown', 'eyJbad.bad.bad'], ['scopeless', legacyKey]]) {
  try {
    await make(bad).files.public.list()
  } catch (error) {
    out[name] = { status: error.statusCode ?? error.details?.statusCode, text: String(error.message) }
  }
}
process.stdout.write(JSON.stringify(out))
