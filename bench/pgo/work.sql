-- What @items, @sales and @factor are says run.py.
-- Inserts, indexes, joins, aggregates, text: what databases do all day.
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price REAL, kind INTEGER);
CREATE TABLE sale(id INTEGER PRIMARY KEY, item INTEGER, day INTEGER, amount INTEGER, note TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @items)
    INSERT INTO item SELECT i, 'item ' || (i * 7919 % 10007), i * @factor % 997 / 10.0, i % 13 FROM n;
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < @sales)
    INSERT INTO sale SELECT i, i * 31 % @items + 1, i * 17 % 365, i % 9 + 1, 'sale ' || hex(i * @factor) FROM n;
CREATE INDEX sale_item ON sale(item, day);
CREATE INDEX item_name ON item(name);
SELECT kind, count(*), sum(amount * price), max(name) FROM sale JOIN item ON item.id = sale.item
    WHERE day BETWEEN 30 AND 200 GROUP BY kind ORDER BY 3 DESC;
SELECT count(*) FROM sale WHERE note LIKE '%A' || @factor || '%' OR substr(note, 6, 2) = '3B';
SELECT name, (SELECT sum(amount) FROM sale WHERE item = item.id) FROM item WHERE name < 'item 3' ORDER BY name LIMIT 20;
SELECT day, avg(amount), group_concat(DISTINCT item % 5) FROM sale GROUP BY day HAVING count(*) > 10 ORDER BY 2, 1 LIMIT 10;
UPDATE item SET price = price * 1.1 WHERE kind IN (SELECT kind FROM item GROUP BY kind HAVING avg(price) < 50);
SELECT a.name, b.name FROM item a JOIN item b ON a.name = b.name AND a.id < b.id ORDER BY a.id LIMIT 10;
DELETE FROM sale WHERE day % 7 = 3;
SELECT count(*), sum(length(note)), min(price) FROM sale, item WHERE sale.item = item.id;
