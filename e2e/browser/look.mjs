// Looks at the rack's web page in Chromium as an operator would. What it is to see comes as JSON in the first argument;
// it prints a line when it has seen the job at work and one when it was done, then reads the name of another job from
// its input, and leaves pictures and the proof in a folder. A wrong page ends it with an error. See ../web_test.go.
import { chromium } from 'playwright-core';
import { createInterface } from 'node:readline';
import assert from 'node:assert/strict';

const want = JSON.parse(process.argv[2]); // url, out, token, tenant, job, key, partitions
const orders = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const browser = await chromium.launch({
  executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
    '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
});
const limit = { timeout: 120_000 };
try {
  const page = await browser.newPage({ viewport: { width: 1280, height: 800 }, acceptDownloads: true });
  page.setDefaultTimeout(limit.timeout);
  const complaints = [];
  const asked = [];
  page.on('console', (m) => { if (m.type() === 'error') complaints.push(m.text()); });
  page.on('pageerror', (e) => complaints.push(String(e)));
  page.on('dialog', (d) => { asked.push(d.message()); return d.accept(); });
  page.on('request', (r) => { if (!r.url().startsWith(want.url) && !r.url().startsWith('blob:')) complaints.push(`asks ${r.url()}`); });

  await page.goto(want.url);
  await page.locator('[data-node="n1"] .chip', { hasText: 'ready' }).first().waitFor();
  const shoot = (name) => page.screenshot({ path: `${want.out}/${name}.png`, fullPage: true });
  await shoot('rack');

  // The job at work, and without a reload all of it green.
  await page.locator(`a[href="#/job/${want.tenant}/${want.job}"]`).click();
  await page.locator('#cells .cell').first().waitFor();
  assert.equal(await page.locator('#cells .cell').count(), want.partitions);
  assert.notEqual(await page.locator('#cells .cell[data-stage="verified"]').count(), want.partitions);
  await page.locator('#cells .cell[data-stage="proving"]').first().waitFor();
  await shoot('job-at-work');
  console.log('at work');
  await page.waitForFunction((n) => document.querySelectorAll('#cells .cell[data-stage="verified"]').length === n, want.partitions, limit);
  const download = page.waitForEvent('download');
  await page.locator('[data-proof="proof"]').click();
  await (await download).saveAs(`${want.out}/proof`);
  await shoot('job-done');

  console.log('done');
  const held = (await orders.next()).value;

  // Nothing can be changed without the token; with it the other job is cancelled.
  await page.goto(`${want.url}#/job/${want.tenant}/${held}`);
  await page.locator('#cells .cell').first().waitFor();
  assert.equal(await page.getByRole('button', { name: 'Cancel job' }).count(), 0);
  await page.locator('#session').click();
  await page.locator('dialog input').fill(want.token);
  await page.getByRole('button', { name: 'Use it' }).click();
  await page.getByRole('button', { name: 'Cancel job' }).click();
  await page.locator('.chip', { hasText: /^cancell/ }).first().waitFor();

  for (const [path, heading] of [['letters', 'Dead letters'], ['assets', 'Assets'], ['audit', 'Audit records']]) {
    await page.goto(`${want.url}#/${path}`);
    await page.getByRole('heading', { name: heading }).waitFor();
    await shoot(path);
  }
  await page.locator(`a[href="#/job/${want.tenant}/${want.job}"]`).first().waitFor(); // its audit record
  await page.emulateMedia({ colorScheme: 'dark' });
  await page.goto(want.url);
  await page.locator('[data-node="n1"]').waitFor();
  await page.getByText(want.key, { exact: true }).waitFor(); // as text: it is full of markup
  await shoot('rack-dark');
  assert.deepEqual(asked, [`Cancel job ${held}?`]);
  assert.deepEqual(complaints, []);
} finally {
  await browser.close();
  process.stdin.destroy();
}
