// Logs into WordPress by its form, writes a draft on the dashboard, and prints what was seen as JSON.
const { spawn } = require('child_process')
const [program, profile, host, address, user, password] = process.argv.slice(1)

const child = spawn(program, [
  '--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--remote-debugging-pipe', '--window-size=1280,800',
  `--host-resolver-rules=MAP ${host} ${address}, MAP * ~NOTFOUND`, `--user-data-dir=${profile}`, 'about:blank'
], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] })

const pending = new Map()
const statuses = new Map()
let count = 0
let session
let loaded = () => {}
let rest = ''
child.stdio[4].on('data', data => {
  rest += data
  const messages = rest.split('\0')
  rest = messages.pop()
  for (const text of messages) {
    const message = JSON.parse(text)
    if (message.id) pending.get(message.id)(message.result || {})
    if (message.method === 'Page.loadEventFired') loaded()
    if (message.method === 'Network.responseReceived') {
      const { url, status } = message.params.response
      if (url.startsWith(`http://${host}/`)) statuses.set(url.split('?')[0], status)
    }
  }
})
const call = (method, params = {}) => new Promise(resolve => {
  count += 1
  pending.set(count, resolve)
  child.stdio[3].write(JSON.stringify({ id: count, method, params, sessionId: session }) + '\0')
})
const evaluate = async expression => {
  const answer = await call('Runtime.evaluate', { expression, returnByValue: true, awaitPromise: true })
  return answer.result ? answer.result.value : undefined
}
// Waits for the page that an action leads to.
const through = async action => {
  const done = new Promise(resolve => { loaded = resolve })
  await action()
  await done
}
const until = async expression => {
  for (let tries = 0; tries < 300; tries++) {
    if (await evaluate(expression)) return true
    await new Promise(resolve => setTimeout(resolve, 100))
  }
  return false
}

const run = async () => {
  const { targetInfos } = await call('Target.getTargets')
  const { targetId } = targetInfos.find(it => it.type === 'page')
  session = (await call('Target.attachToTarget', { targetId, flatten: true })).sessionId
  for (const domain of ['Page', 'Runtime', 'Network']) await call(`${domain}.enable`)
  const seen = {}
  await through(() => call('Page.navigate', { url: `http://${host}/wp-login.php` }))
  seen.login = await evaluate('document.title')
  await through(() => evaluate(`
    document.querySelector('#user_login').value = ${JSON.stringify(user)}
    document.querySelector('#user_pass').value = ${JSON.stringify(password)}
    document.querySelector('#wp-submit').click()`))
  seen.dashboard = await evaluate('document.title')
  seen.account = await evaluate("document.querySelector('#wp-admin-bar-my-account .display-name').textContent")
  const title = `A draft by ${address}`
  await evaluate(`
    document.querySelector('#quick-press #title').value = ${JSON.stringify(title)}
    document.querySelector('#quick-press #content').value = 'Written in a browser.'
    document.querySelector('#quick-press #save-post').click()`)
  seen.draft = await until(`(document.querySelector('.drafts') || document.body).textContent.includes(${JSON.stringify(title)})`)
  await through(() => call('Page.navigate', { url: `http://${host}/wp-admin/edit.php` }))
  seen.listed = await evaluate(`document.querySelector('#the-list').textContent.includes(${JSON.stringify(title)})`)
  await through(() => call('Page.navigate', { url: `http://${host}/` }))
  seen.front = await evaluate('document.title')
  seen.failed = [...statuses].filter(([, status]) => status >= 400).sort()
  seen.loaded = [...statuses.keys()].filter(url => /\.(js|css|svg|png|woff2?)$/.test(url)).sort()
  console.log(JSON.stringify(seen))
}
run().finally(() => child.kill())
setTimeout(() => { child.kill(); process.exit(1) }, 120000).unref()
