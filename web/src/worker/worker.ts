/** The entry of the worker. */

import { serve } from './host.ts'

serve(self as unknown as Parameters<typeof serve>[0], () => new Worker(self.location.href, { type: 'module' }))
