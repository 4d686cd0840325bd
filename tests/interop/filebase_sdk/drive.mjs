// Filebase's own client against a server given by URL: objects, folders, pins, names. Prints what came back.
import { NameManager, ObjectManager, PinManager } from '@filebase/sdk'

const [key, secret, bucket, url] = process.argv.slice(2)
const gateway = { endpoint: url }
const objects = new ObjectManager(key, secret, { bucket, gateway })
const pins = new PinManager(key, secret, { bucket, gateway })
const names = new NameManager(key, secret)
const out = {}

out.object = (await objects.upload('greeting.txt', Buffer.from('hello'), { application: 'tests' })).cid
const folder = await objects.upload('folder', [
  { path: '/a.txt', content: Buffer.from('one') },
  { path: '/deep/b.txt', content: Buffer.from('two') }
])
out.folder = folder.cid
out.expected = folder.entries['/'].cid.toString()
out.listed = (await objects.list()).Contents.map((entry) => entry.Key)
out.got = (await objects.get('greeting.txt')).Metadata.cid
const pin = await pins.create('pinned', out.folder)
out.pin = { id: pin.requestid, cid: pin.pin.cid, name: pin.pin.name }
await pins.list({ name: 'pinned', status: 'queued,pinning,pinned' })
await pins.list({ name: 'pinned', status: 'queued,pinning,pinned' })
out.pinned = (await pins.list({ name: 'pinned' })).results.map((row) => row.status)
out.status = (await pins.get(pin.requestid)).status
out.replaced = (await pins.replace(pin.requestid, out.object, { name: 'pinned' })).pin.cid
out.unpinned = await pins.delete(pin.requestid)
out.gone = await pins.get(pin.requestid)
out.name = await names.create('label', out.folder)
out.moved = await names.update('label', out.object)
out.value = (await names.get('label')).cid
out.names = (await names.list()).map((row) => row.label)
out.nameDeleted = await names.delete('label')
out.noName = await names.get('label')
out.deleted = await objects.delete('greeting.txt')
out.after = (await objects.list()).Contents.map((entry) => entry.Key)
try {
  await new ObjectManager(key, 'wrong secret', { bucket }).list()
} catch (error) {
  out.refused = error.name
}
try {
  await new NameManager(key, 'wrong secret').list()
} catch (error) {
  out.unauthorized = error.message
}
process.stdout.write(JSON.stringify(out))
process.exit(0)
