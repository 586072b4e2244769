// A small shop as an agent (seed 004), with the SDK: it tells of orders, and pays refunds into a book, a JSON line for
// each. It pays as often as it is asked to, as many real shops do: the host sees to it that it is asked once.
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { env } from 'node:process';
import { fileURLToPath } from 'node:url';
import { agent, tool, ToolError } from 'openwop-temporal/agent-sdk';

const folder = env.SHOP_DIR ?? fileURLToPath(new URL('.data', import.meta.url));
const book = join(folder, 'refunds.jsonl');
mkdirSync(folder, { recursive: true });

const GOODS = [
  { item: 'enamel kettle', totalCents: 6_490 },
  { item: 'set of four tea cups', totalCents: 3_200 },
  { item: 'bread knife', totalCents: 4_150 },
  { item: 'cast iron pan', totalCents: 8_900 },
  { item: 'pepper mill', totalCents: 2_790 },
  { item: 'kitchen scale', totalCents: 3_990 },
  { item: 'copper pot', totalCents: 18_900 },
] as const;
const ESPRESSO_MACHINE = { item: 'espresso machine', totalCents: 64_900 };
const FIRST_ORDER = 1_001;
const LAST_ORDER = 1_050;
/** Which of them are not as the others are. */
const FINAL_SALE = new Set([1_007, 1_019, 1_028, 1_043]);
const WINDOW_CLOSED = new Set([1_004, 1_011, 1_016, 1_023, 1_032, 1_037, 1_041, 1_048]);
const HIGH_VALUE = 1_031;

const orderId = { type: 'string', minLength: 1, maxLength: 64 } as const;

function orderOf(id: string) {
  const number = Number(/^S-(\d{4})$/.exec(id)?.[1]);
  if (!(number >= FIRST_ORDER && number <= LAST_ORDER))
    throw new ToolError('shop.not_found', 'There is no such order.');
  const goods = GOODS[number % GOODS.length] ?? GOODS[0];
  return {
    orderId: id,
    ...(number === HIGH_VALUE ? ESPRESSO_MACHINE : goods),
    sale: FINAL_SALE.has(number) ? ('final' as const) : ('regular' as const),
    window: WINDOW_CLOSED.has(number) ? ('closed' as const) : ('open' as const),
    value: number === HIGH_VALUE ? ('high' as const) : ('ordinary' as const),
  };
}

const readOrder = tool({
  name: 'read_order',
  description:
    'Reads an order: what was bought, its total in cents, whether it was sold as final, whether the time for returns is over, and whether it is of high value.',
  input: {
    type: 'object',
    properties: { orderId },
    required: ['orderId'],
    additionalProperties: false,
  },
  output: {
    type: 'object',
    properties: {
      orderId,
      item: { type: 'string' },
      totalCents: { type: 'integer' },
      sale: { enum: ['regular', 'final'] },
      window: { enum: ['open', 'closed'] },
      value: { enum: ['ordinary', 'high'] },
    },
    required: ['orderId', 'item', 'totalCents', 'sale', 'window', 'value'],
    additionalProperties: false,
  },
  sideEffects: false,
  run: ({ orderId: id }) => orderOf(id),
});

const payRefund = tool({
  name: 'pay_refund',
  description: 'Pays a refund. Every call pays again.',
  input: {
    type: 'object',
    properties: {
      orderId,
      amountCents: { type: 'integer', minimum: 1 },
      reason: { type: 'string', minLength: 1, maxLength: 1_000 },
    },
    required: ['orderId', 'amountCents', 'reason'],
    additionalProperties: false,
  },
  output: {
    type: 'object',
    properties: { refundId: { type: 'string' }, amountCents: { type: 'integer' } },
    required: ['refundId', 'amountCents'],
    additionalProperties: false,
  },
  sideEffects: true,
  run: ({ orderId: id, amountCents, reason }, { context }) => {
    if (amountCents > orderOf(id).totalCents)
      throw new ToolError('shop.too_much', 'That is more than the order cost.');
    const before = paidFor(id);
    const refundId = `${id.replace('S', 'R')}${before === 0 ? '' : `-${before + 1}`}`;
    const line = { refundId, orderId: id, amountCents, reason, run: context.run_id };
    appendFileSync(book, `${JSON.stringify(line)}\n`);
    return { refundId, amountCents };
  },
});

/** How often an order was refunded. */
function paidFor(id: string): number {
  const lines = existsSync(book) ? readFileSync(book, 'utf8').split('\n') : [];
  return lines.filter((line) => line.includes(`"orderId":"${id}"`)).length;
}

await agent({
  id: 'com.example.shop',
  version: '1.0.0',
  manifest: new URL('opensentience.agent.json', import.meta.url),
  tools: [readOrder, payRefund],
}).run();
